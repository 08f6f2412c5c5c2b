"""Search for a reward that a long sequence of events may lead to, for as long as steps remain.

Input: the `LearnerState` and the state of an episode. Output: the next path, over known steps.

What changes a hidden state may be visible nowhere. So queries and observations that stand out are
*candidates* for events, in groups: the effects of an action that hardly ever has one, the queries
of an action without visible effect, steps without effect of other actions, visits of observations,
and all queries. Tours pass through a group several times: k passes contain every order of k of its
candidates. Sequences without another candidate in between are read one after another, the nearest
first, where another candidate may undo what was done. The rest of the steps are walks to random
candidates or to rare observations, and random actions. Every draw halves the probability from one
group, number of passes or length to the next, so that none is excluded and the shortest are first.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from resolvent.exploration.empirical_model import (
    ENDS,
    RESET,
    UNKNOWN,
    EmpiricalModel,
    Path,
    Step,
    StepSearch,
)
from resolvent.exploration.state import EpisodeState, LearnerState
from resolvent.exploration.tables import Query
from resolvent.exploration.words import read_and_repeat

SEARCH: Final = "search for another reward"
ANY_ACTION: Final = -1  # in the place of the action of a query: the observation is a candidate
HARDLY_EVER: Final = 0.1  # largest share of visible effects of an action that has hardly any
MAX_TOUR: Final = 128  # maximum number of candidates of a tour
MAX_TOUR_STEPS: Final = 1_000  # maximum number of steps of a tour
FIRST_STEPS: Final = 2_000  # number of steps that search by given labels only
MAX_EPISODE: Final = 256  # number of steps of an episode that reads words of labels made
SEQUENCE_STEPS: Final = 256  # number of steps of sequences
BLOCK: Final = 64  # number of steps of any other path
N_COMPARED: Final = 8  # number of observations of which the least frequent one is visited
MAX_LEVEL: Final = 5  # maximum number of passes of a tour, and length of a sequence
SHARES: Final = (0.1, 0.7, 0.1, 0.1)  # of tours, sequences, random candidates, random actions


@dataclass
class CandidateGroups:
    """The groups of candidates, and the sequences of each length read in each.

    `exhausted` are groups and lengths without an unread sequence in reach. The groups hold for a
    model with `n_known` known steps.
    """

    n_known: int
    groups: list[list[Query]]
    read: dict[tuple[int, int], set[tuple[Query, ...]]] = field(default_factory=dict)
    exhausted: set[tuple[int, int]] = field(default_factory=set)


def search_reward(state: LearnerState, episode: EpisodeState) -> Path:
    """Return the next path of a search for a step with another reward, which never ends.

    Words of labels and actions least tried have the first steps to themselves if labels are given,
    and later half of all episodes; a quarter of them if the learner makes labels.
    """
    path, is_given, turn = None, not state.labels.are_made, state.buffer.episodes % 8
    has_turn = turn < 2 or (is_given and (state.steps < FIRST_STEPS or turn < 4))
    if has_turn and (is_given or episode.length < MAX_EPISODE):
        path = read_and_repeat(state, episode)
    return path or search_on(state, episode)


def search_on(state: LearnerState, episode: EpisodeState) -> Path:
    """Return the next path of a search for a reward that goes on for ever."""
    rng = np.random.default_rng((state.config.seed, state.steps, episode.index, 1))
    if episode.length and rng.random() < 0.5:
        return RESET
    walk, model = _Walk(state, episode, rng), state.present_model()
    kinds = walk.tour, walk.read_sequences, walk.visit_candidates, walk.take_random_actions
    kinds[int(rng.choice(len(SHARES), p=SHARES))]()
    if len(walk.steps) < BLOCK // 4:
        walk.take_random_actions()
    if model.terminating and rng.random() < 0.5:
        walk.go_to(model.terminating)
    # Without a known step from here, any action is taken.
    steps = walk.steps or [(episode.row, state.random_action(episode))]
    return Path(tuple(steps), SEARCH)


class _Walk:
    """Steps over known ones from a row; shortest paths are drawn by chance."""

    def __init__(
        self, state: LearnerState, episode: EpisodeState, rng: np.random.Generator
    ) -> None:
        self.state, self.model = state, state.present_model()
        self.rng, self.episode, self.row, self.steps = rng, episode, episode.row, list[Step]()
        known = state.selection.candidates
        if known is None or known.n_known != self.model.n_known:
            known = CandidateGroups(self.model.n_known, candidate_groups(self.model))
            state.selection.candidates = known
        self.candidates = known

    def go_to(self, candidates: Collection[Query]) -> Query | None:
        """Take the steps to the nearest of some candidates, and return it if it is in reach."""
        if self.row == ENDS:
            return None
        model, search = self.model, StepSearch[int]([self.row])
        actions = self.rng.permutation(model.n_actions).tolist()
        for row in search:
            observation, next_row = model.augmented_states[row][0], model.next_row[row]
            if (observation, ANY_ACTION) in candidates and (row != self.row or not self.steps):
                self._take(search.path_to(row), row)
                return observation, ANY_ACTION
            for action in actions:
                target = next_row[action]
                if (observation, action) in candidates and target != UNKNOWN:
                    self._take(search.steps_to(row, action), target)
                    return observation, action
                if target >= 0:
                    search.add(target, row, action)
        return None

    def _take(self, steps: Iterable[Step], row: int) -> None:
        self.steps += steps
        self.row = row

    def _level(self, count: int, base: int = 2) -> int:
        """Draw a number below `count`, each less probable by a factor than the one before."""
        return min(int(self.rng.geometric(1 - 1 / base)), count) - 1

    def take_random_actions(self) -> None:
        """Take known steps at random until an episode ends or a step is not known."""
        for action in self.rng.integers(self.model.n_actions, size=BLOCK).tolist():
            if self.row == ENDS or self.model.next_row[self.row][action] == UNKNOWN:
                return
            self._take([(self.row, action)], self.model.next_row[self.row][action])

    def tour(self) -> None:
        """Go through a group several times, from one candidate to the nearest other one."""
        group = self.candidates.groups[self._level(len(self.candidates.groups))]
        chosen = self.rng.permutation(len(group))[:MAX_TOUR]
        for _ in range(1 + self._level(MAX_LEVEL)):
            remaining = {group[number] for number in chosen}
            self.go_to({group[int(self.rng.choice(chosen))]})
            while remaining and len(self.steps) < MAX_TOUR_STEPS:
                reached = self.go_to(remaining)
                if reached is None:
                    break
                remaining.discard(reached)

    def read_sequences(self) -> None:
        """Read sequences of candidates that were never read without another one in between.

        The fewest sequences come first, and those of the groups that stand out most.
        """
        candidates, model = self.candidates, self.model
        kinds = sorted(
            (4**number * len(group) ** length, number, length)
            for number, group in enumerate(candidates.groups)
            for length in range(2, MAX_LEVEL + 1)
            if (number, length) not in candidates.exhausted and ANY_ACTION not in group[0]
        )
        if not kinds:
            return
        _, number, length = kinds[self._level(len(kinds), 4)]
        group = set(candidates.groups[number])
        if (number, length) not in candidates.read:
            candidates.read[number, length] = _sequences_read(self.state, group, length)
        read, recorded = candidates.read[number, length], self.episode.recorded
        queries = zip(recorded.observations, recorded.actions, strict=False)
        recent = [query for query in queries if query in group]
        while len(self.steps) < SEQUENCE_STEPS:
            n_steps, before = len(self.steps), tuple(recent[1 - length :])
            unread = {query for query in group if (*before, query) not in read}
            if not unread or (self.rng.random() < 0.5 and self.go_to(unread) is None):
                if not self.steps:
                    candidates.exhausted.add((number, length))
                return
            if len(self.steps) == n_steps:  # distant ones would come last
                drawn = sorted(unread)[int(self.rng.integers(len(unread)))]
                if self.go_to({drawn}) is None:
                    return
            for row, action in self.steps[n_steps:]:  # others of the group may be on the way
                query = model.augmented_states[row][0], action
                if query in group:
                    recent.append(query)
                    read.add(tuple(recent[-length:]))

    def visit_candidates(self) -> None:
        """Go to random candidates, or to observations that are rare among some."""
        observations, times = np.unique(
            self.state.buffer.columns().observations, return_counts=True
        )
        while len(self.steps) < BLOCK:
            if self.rng.random() < 0.25:
                some = self.rng.integers(len(observations), size=N_COMPARED)
                target: Query = int(observations[some[times[some].argmin()]]), ANY_ACTION
            else:
                group = self.candidates.groups[self._level(len(self.candidates.groups))]
                target = group[int(self.rng.integers(len(group)))]
            if self.go_to({target}) is None and self.rng.random() < 0.5:
                return


def _sequences_read(state: LearnerState, group: set[Query], length: int) -> set[tuple[Query, ...]]:
    """Return the sequences of candidates read so far."""
    read, buffer = set[tuple[Query, ...]](), state.buffer
    for episode in (*buffer.closed_episodes(), *buffer.open_episodes().values()):
        queries = zip(episode.observations, episode.actions, strict=False)
        asked = [query for query in queries if query in group]
        read.update(zip(*(asked[first:] for first in range(length)), strict=False))
    return read


def candidate_groups(model: EmpiricalModel) -> list[list[Query]]:
    """Return the groups of candidates by the effects of all queries."""
    known, groups = model.last_outcome, list[list[Query]]()
    queries = sorted(known.keys() - model.terminating)
    effects, bumps = list[Query](), list[Query]()
    for action in range(model.n_actions):
        of_action = [query for query in queries if query[1] == action]
        silent = [query for query in of_action if known[query] == query[0]]
        if silent and len(silent) >= (1 - HARDLY_EVER) * len(of_action):
            groups.append(silent)
            effects += sorted({*of_action} - {*silent})
        else:
            bumps += silent
    if len(groups) > 1:
        groups.append([query for group in groups for query in group])
    visits = [(observation, ANY_ACTION) for observation in sorted({query[0] for query in known})]
    return [group for group in (effects, *groups, bumps, visits, queries) if group]
