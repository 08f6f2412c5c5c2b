"""What is known → what to do next, for any number of episodes side by side; in codes.

Each round chooses what is most worth knowing for the steps it costs, and goes there over
known steps.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from resolvent.arithmetic import log
from resolvent.exploration.buffer import Episode, Buffer
from resolvent.exploration.empirical_model import UNKNOWN, Context, EmpiricalModel
from resolvent.exploration.equivalence import EquivalenceTests
from resolvent.exploration.hypothesis import Hypothesis
from resolvent.exploration.state_checks import distinguishing_query, untested, untested_pair
from resolvent.exploration.values import TESTED, ValueBounds, Path, nearest, within
from resolvent.exploration.words import (
    AGAIN,
    MAX_WORD_LENGTH,
    QueryLog,
    without_neutral,
    unread_word,
)

TESTS: Final = 6
"""So many questions are asked where a label led, to see whether the state is the right one."""

STRAYING: Final = 64
"""So many steps an episode may last that does what was done least often."""

PAIR_TESTS: Final = 2
"""So many are asked after two labels in a row."""

STARTS_CONFIRMED: Final = 10
"""The plan is carried out from every start; where there are many, from so many, and from one with
each first label."""

AGAIN_AFTER: Final = 2
"""Everything is asked again after histories of up to so many labels."""

LEAST_RECHECKING, RECHECKING_SHARE = 150, 0.1
"""So many steps, or that share of all, go into asking again what is known already."""

LEAST_CONFIRMING, CONFIRMING_SHARE = 40, 0.02
"""So many steps, and that share of all, go into carrying out the plan before it is done."""

CALM_RESETS: Final = 30
"""After so many episodes that began as others did, there is no other way to begin."""

LONG_TEST, FEW_RESETS = 20, 8
"""Before a test takes so many steps, so many episodes are begun to see whether they differ; and
where one takes two thirds of the steps in another episode, that is begun."""

STARTS_TRIED: Final = 4
"""From so many starts it is worked out how much use another episode is."""

RATED_APART: Final = 0.005
"""It is worked out again once that share more steps are known, or where it says so."""

EMPTY: Final = 200
"""After so many resets to starts that are of no use, what is left counts as out of reach."""

GONE_ROUND: Final = 0.01
"""A plan that goes round and round to be paid is carried out until what is paid later counts for
no more than this share of it."""

MOST_ROUND: Final = 1_000
"""So many steps of such a plan are carried out at most."""

PLAN_HOLDS = "whether the plan holds"


@dataclass
class EpisodeState:
    """Where one of several episodes side by side is, and where it is going.

    `way` are the steps that lie ahead, as (situation, action), and `place` is the number of
    the environment.
    """

    place: int = 0
    episode: Episode = field(default_factory=Episode)
    row: int = UNKNOWN
    way: list[tuple[int, int]] = field(default_factory=list)
    why: str = ""
    goes_on: bool = False
    start: int = UNKNOWN
    context: Context = ()
    before: Context = ()


class Deciding:
    """What is known of a world, and what to do next by it."""

    def __init__(
        self,
        log: Buffer,
        beliefs: Hypothesis,
        *,
        gamma: float,
        seed: int,
        reward_range: tuple[float, float] | None,
        states: int | None = None,
        target: float = 0.0,
    ) -> None:
        self.log, self.beliefs, self.seed = log, beliefs, seed
        self.reward_range, self.states, self.target = reward_range, states, target
        self.model: EmpiricalModel | None = None
        self.hopes = ValueBounds(gamma)
        self.doubts = EquivalenceTests(beliefs, states)
        self.cursors: list[EpisodeState] = []
        self.surprises = self.rounds = 0
        self.settled = self.thought_over = False
        self._weighed_at, self._rated_at, self._rate = -1, (-1, -1), 0.0
        self.confirmed: set[tuple[int, ...]] = set()
        """The starts from which the plan was carried out, as situations."""
        self._given_up: set[tuple[Context, int]] = set()
        self._given_up_pairs: set[tuple[Context, int, int]] = set()
        self._asked: QueryLog | None = None
        self._empty = self._calm = self.confirming = self.rechecked = 0

    @property
    def steps(self) -> int:
        """How many steps were taken so far."""
        return self.log.steps + sum(len(one.episode) for one in self.cursors)

    @property
    def depth(self) -> int:
        """How many labels in a row are tested: more than two where there may be more states."""
        tables = self.beliefs.tables
        if self.states is None or tables is None:
            return 2
        return min(max(self.states - max(tables.sizes) + 1, 2), MAX_WORD_LENGTH)

    @property
    def vacuous(self) -> bool:
        """Whether all that was ever paid is the same, so that nothing is better than another."""
        return self.model is None or self.model.all_rewards_equal

    def act(self, cursor: EpisodeState) -> int | None:
        """Return what to do, or None where nothing more is to be had from this episode."""
        if self.model is None or cursor.row == UNKNOWN:
            cursor.why = "where it is"
            return self._at_random(cursor)
        if not cursor.way:
            way = self._way(self.model, cursor)
            if way is None or way.start != cursor.row:
                if not len(cursor.episode):
                    self._empty += 1
                return None
            cursor.way, cursor.why = list(way.steps), way.why
            self.rounds += 1
        self._empty = 0
        return cursor.way[0][1]

    def _way(self, model: EmpiricalModel, cursor: EpisodeState) -> Path | None:
        """Return the way to what is most worth knowing, or None if nothing is left."""
        self._weigh(model)
        way = self._chosen(model, cursor)
        if way is None and self._weighed_at != model.n_known:
            self._weigh(model, fully=True)
            way = self._chosen(model, cursor)
        if self._may_begin_otherwise(model, cursor, way):
            return None
        way = way or self._tried_out(model, cursor) or self._test(model, cursor)
        if way is None and model.all_rewards_equal:
            return self._beyond(model, cursor)
        way = way or self._pair(model, cursor)
        for length in range(3, self.depth + 1):
            way = way or self._word(model, cursor, length)
        return (
            way
            or self._recheck(model, cursor)
            or self._doubt(model, cursor)
            or self._confirmation(model, cursor)
        )

    def _may_begin_otherwise(
        self, model: EmpiricalModel, cursor: EpisodeState, way: Path | None
    ) -> bool:
        """Whether to look first, before steps go into tests, for starts that never came up."""
        if len(cursor.episode) or model.all_rewards_equal:
            return False
        if way is None:
            return self._calm < CALM_RESETS
        return way.why == TESTED and len(way.steps) >= LONG_TEST and self._calm < FEW_RESETS

    def _doubt(self, model: EmpiricalModel, cursor: EpisodeState) -> Path | None:
        """Go where other machines that explain everything, too, would turn out to be wrong."""
        if self._empty > EMPTY:
            return None
        under_way = [one.episode for one in self.cursors]
        return self.doubts.way(model, cursor.row, cursor.episode, under_way)

    def _chosen(self, model: EmpiricalModel, cursor: EpisodeState) -> Path | None:
        here = nearest(model, self.hopes, [cursor.row])
        asked = model.queries_after.get(cursor.context, set())
        if here is None:
            test = distinguishing_query(model, cursor.row, asked, TESTS)
            return test or self._from_starts(model)
        floor = here.rate
        test = within(model, cursor.row, asked, TESTS, floor)
        if test is not None:
            return test
        # Another episode is worth it where far less has to be walked than from here.
        begun = len(cursor.episode) > 0
        if len(model.starts) == 1:
            return (self._from_starts(model, 1.5 * floor) if begun else None) or here
        may_leave = begun or any(led != UNKNOWN for led in model.next_row[cursor.row])
        least = (1.5 if begun else 3.0) * floor
        if may_leave and self._empty <= EMPTY and self._another_is_better(model, least):
            return Path((), 0.0, "", UNKNOWN)
        return here

    def _from_starts(self, model: EmpiricalModel, floor: float = 0.0) -> Path | None:
        if self._empty > EMPTY:
            return None
        return nearest(model, self.hopes, model.starts, floor)

    def _another_is_better(self, model: EmpiricalModel, least: float) -> bool:
        """Whether steps are of more use than that in an episode that begins anywhere.

        What was worked out a few steps ago says no; whether yes, is worked out again.
        """
        weighed_at, rated_at = self._rated_at
        lately = 0 <= model.n_known - rated_at < RATED_APART * model.n_known
        if weighed_at == self._weighed_at and lately and self._rate <= least:
            return False
        self._rate = self._rate_of_starts(model)
        self._rated_at = self._weighed_at, model.n_known
        return self._rate > least

    def _rate_of_starts(self, model: EmpiricalModel) -> float:
        """Return of how much use a step is in an episode that begins anywhere, from a few starts.

        Which ones follows from the number of episodes.
        """
        starts = list(model.starts)
        count = min(STARTS_TRIED, len(starts))
        rates = []
        for number in range(count):
            one = starts[(self.log.episodes * count + number) * 7919 % len(starts)]
            way = nearest(model, self.hopes, [one])
            rates.append(0.0 if way is None else way.rate)
        return sum(rates) / count

    def _test(self, model: EmpiricalModel, cursor: EpisodeState) -> Path | None:
        here = untested(model, [cursor.row], TESTS, self._given_up)
        if self._is_long(cursor, here):
            there = untested(model, model.starts, TESTS, set(self._given_up))
            if there is not None and _is_far_shorter(there, here):
                return there
        return here

    def _is_long(self, cursor: EpisodeState, way: Path | None) -> bool:
        """Whether it may be shorter to begin another episode than to go that way."""
        if self._empty > EMPTY:
            return False
        return way is None or (len(cursor.episode) > 0 and len(way.steps) >= LONG_TEST)

    def _beyond(self, model: EmpiricalModel, cursor: EpisodeState) -> Path | None:
        """Look for something that pays: ever longer words, and everything after each of them.

        Every other episode just does what was done least often: what pays may be near.
        """
        if self.log.episodes % 2:
            return self._least_tried(model, cursor)
        for length in range(2, MAX_WORD_LENGTH + 1):
            way = self._word(model, cursor, length)
            way = way or self._again(model, cursor, length - 1)
            if way is not None:
                return way
        self.settled = True
        return None

    def _least_tried(
        self, model: EmpiricalModel, cursor: EpisodeState, why: str = "something that pays"
    ) -> Path:
        """Return a step that was taken least often after the last labels, for a while."""
        if len(cursor.episode) >= STRAYING:
            return Path((), 0.0, "", UNKNOWN)
        history = without_neutral(model, cursor.episode.labels[1:])
        observation = model.augmented_states[cursor.row][0]
        asked = self._what_was_asked(model)
        actions = asked.least_tried(history, observation, len(self.log.actions))
        action = actions[self._at_random(cursor) % len(actions)]
        return Path(((cursor.row, action),), 1.0, why, cursor.row)

    def _what_was_asked(self, model: EmpiricalModel) -> QueryLog:
        if self._asked is None:
            columns = self.log.columns(0, [one.episode for one in self.cursors])
            self._asked = QueryLog(model, columns)
        return self._asked

    def _again(self, model: EmpiricalModel, cursor: EpisodeState, length: int) -> Path | None:
        """Ask again what is known already, after histories of so many labels."""
        asked = self._what_was_asked(model)
        history = without_neutral(model, cursor.episode.labels[1:])
        way = asked.way(cursor.row, history, length)
        if way is None and len(cursor.episode):
            for start in model.starts:
                if asked.way(start, (), length):
                    return Path((), 0.0, "", UNKNOWN)
        return way

    def _pair(self, model: EmpiricalModel, cursor: EpisodeState) -> Path | None:
        """Read two labels in a row, and ask then: a state more may hide behind the first."""
        given_up = self._given_up_pairs
        way = untested_pair(model, cursor.row, cursor.context, PAIR_TESTS, given_up)
        if len(cursor.episode) and self._is_long(cursor, way):
            for start in model.starts:
                begun = (-1, *model.start_symbols[start])
                there = untested_pair(model, start, begun, PAIR_TESTS, set(given_up))
                if there is not None and _is_far_shorter(there, way):
                    return Path((), 0.0, "", UNKNOWN)
        return way

    def _word(self, model: EmpiricalModel, cursor: EpisodeState, length: int) -> Path | None:
        """Read so many labels one after another as they never were."""
        way = unread_word(model, cursor.row, cursor.episode, length)
        if way is None and len(cursor.episode) and self._empty <= EMPTY:
            for start in model.starts:
                if unread_word(model, start, Episode(), length):
                    return Path((), 0.0, "", UNKNOWN)
        return way

    def _recheck(self, model: EmpiricalModel, cursor: EpisodeState) -> Path | None:
        """Ask everything again after a label or two, for as many steps as that is worth.

        A state that nothing has shown yet looks like another: what pays there was asked before,
        and did not pay.
        """
        if self.rechecked >= max(LEAST_RECHECKING, RECHECKING_SHARE * self.steps):
            return None
        for length in range(AGAIN_AFTER + 1):
            way = self._again(model, cursor, length)
            if way is not None:
                return way
        # Where labels come by chance, walks show that once more, and nothing else.
        return None if model.nondeterministic else self._least_tried(model, cursor, AGAIN)

    def _confirmation(self, model: EmpiricalModel, cursor: EpisodeState) -> Path | None:
        """Act by the plan, where it was not carried out since the machines changed last."""
        # A world that is random may have been lucky once, or twice.
        often = self.confirming >= LEAST_CONFIRMING + CONFIRMING_SHARE * self.steps
        self.settled = often and self._calm >= CALM_RESETS and self._is_confirmed(model)
        begun = model.augmented_states[cursor.row]
        if len(cursor.episode) or (often and begun in self.confirmed):
            return None
        return self._plan_from_here(model, cursor)

    def _is_confirmed(self, model: EmpiricalModel) -> bool:
        """Whether the plan as it is now was carried out from enough starts."""
        for row, begun in model.start_symbols.items():
            situation = model.augmented_states[row]
            if situation in self.confirmed and not self._was_carried_out(model, row, begun):
                self.confirmed.discard(situation)  # what was found out since made it another
        left = [one for one in model.starts if model.augmented_states[one] not in self.confirmed]
        done = len(model.starts) - len(left)
        kinds = {model.start_symbols[one][1] for one in model.starts}
        kinds -= {model.start_symbols[one][1] for one in model.starts if one not in left}
        enough = done >= STARTS_CONFIRMED and not kinds  # each first label is one of them
        return not left or enough or self._empty > EMPTY

    def _was_carried_out(self, model: EmpiricalModel, row: int, begun: tuple[int, int]) -> bool:
        way = [action for _, action in self._planned(model, row)]
        under_way = (one.episode for one in self.cursors if len(one.episode) >= len(way))
        return (
            not way
            or any(
                (one.observations[0], one.labels[0]) == begun
                and one.actions[: len(way)].tolist() == way
                for one in under_way
            )
            or self.log.has(begun, way)
        )

    def _tried_out(self, model: EmpiricalModel, cursor: EpisodeState) -> Path | None:
        """Act by the plan as soon as nothing better is hoped for: does the world pay as promised?

        Where machines are wrong, that shows it sooner than tests of all that is known do.
        """
        begun = model.augmented_states[cursor.row] in self.confirmed
        if len(cursor.episode) or begun or len(self.confirmed) >= STARTS_CONFIRMED:
            return None
        return None if model.all_rewards_equal else self._plan_from_here(model, cursor)

    def _plan_from_here(self, model: EmpiricalModel, cursor: EpisodeState) -> Path | None:
        """Return the way that the plan takes from a start, unless an episode went it before."""
        begun, way = model.augmented_states[cursor.row], self._planned(model, cursor.row)
        shown = cursor.episode.observations[0], cursor.episode.labels[0]
        if not way or (
            begun not in self.confirmed and self.log.has(shown, [one for _, one in way])
        ):
            self.confirmed.add(begun)
            self.confirming += max(len(way), 1)
            return None
        return Path(tuple(way), 1.0, PLAN_HOLDS, cursor.row)

    def _planned(self, model: EmpiricalModel, row: int) -> list[tuple[int, int]]:
        """Return the steps that the plan takes from a start, round and round where that pays."""
        way, met = list[tuple[int, int]](), dict[int, int]()
        while row >= 0 and row not in met:
            met[row] = len(way)
            step = row, int(self.hopes.policy[row])
            row = model.next_row[row][step[1]]
            if row == UNKNOWN:
                break
            way.append(step)
        if row in met:
            way += self._rounds_from(model, way[met[row] :], len(way))
        return way

    def _rounds_from(
        self, model: EmpiricalModel, cycle: list[tuple[int, int]], taken: int
    ) -> list[tuple[int, int]]:
        """Return how a plan goes on that is back where it was, if it hopes for pay there.

        Machines that are too small may take many steps in a row for one that is taken again.
        """
        gamma = self.hopes.gamma
        paid = max(model.reward[row][action] for row, action in cycle)
        if paid <= model.least or gamma == 1:
            return []
        until = min(int(log(GONE_ROUND) / log(gamma)) + 1, MOST_ROUND)
        return [cycle[place % len(cycle)] for place in range(until - taken)]

    def _weigh(self, model: EmpiricalModel, fully: bool = False) -> None:
        known, before = model.n_known, self._weighed_at
        if fully or before < 0 or known - before >= max(4, known // 20):
            self.hopes.weigh(model, self.reward_range, self.target)
            self._weighed_at = known

    def weigh(self) -> None:
        """Work out what everything is worth by what is known now."""
        if self.model is not None and self._weighed_at != self.model.n_known:
            self._weigh(self.model, fully=True)

    def _at_random(self, cursor: EpisodeState) -> int:
        """Do anything; which follows from the seed, the number of steps and the environment."""
        rng = np.random.default_rng((self.seed, self.steps, cursor.place))
        return int(rng.integers(len(self.log.actions)))


def _is_far_shorter(way: Path, other: Path | None) -> bool:
    return other is None or 1.5 * len(way.steps) <= len(other.steps)
