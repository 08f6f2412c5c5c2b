"""Other machines of as many states that explain everything, too → the way that tells them apart.

Before anything is called optimal, each move is led elsewhere for a trial. Where all that was
seen agrees with that as well, the world has to decide: the shortest way over known steps is
gone on which the two foretell different things. So it is with machines that an inference with
another seed gives.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from resolvent import _core
from resolvent.errors import ContradictoryTraces
from resolvent.exploration.answers import OutputTable
from resolvent.exploration.buffer import Columns, Episode
from resolvent.exploration.empirical_model import UNKNOWN, EmpiricalModel
from resolvent.exploration.hypothesis import EFFORT, Hypothesis
from resolvent.exploration.repair import explains
from resolvent.exploration.tables import QueriedSteps, TransitionTables
from resolvent.exploration.values import Path
from resolvent.pipeline import infer_with

DIFFER: Final = "which of two machines is right"

MOST_WORK: Final = 40_000_000
"""So many steps are walked through at most in trials of other moves."""

MAX_NODES: Final = 50_000
"""So many situations, with what another machine takes them for, are looked through at most."""

States = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Alternative:
    """Machines that explain everything, too, and what they answer."""

    moves: list[list[list[int]]]
    answers: OutputTable

    @classmethod
    def of(cls, tables: TransitionTables, columns: Columns) -> "Alternative":
        """Read off a log what machines with these moves answer."""
        steps = QueriedSteps.of_columns(tables, columns)
        states = [steps.walk(one) for one in tables.moves]
        told: dict[str, Any] = {"transition": columns.observations_after, "reward": columns.rewards}
        answers = OutputTable(tables.sizes, columns.n_actions)
        key = np.ravel_multi_index((*states, steps.question), (*tables.sizes, steps.questions))
        first, _ = _core.numbered(key)
        shown = (
            [one[first] for one in states],
            columns.observations_before[first],
            columns.actions[first],
        )
        for place, kind in enumerate(tables.kinds):
            answers.note_all(place, *shown, told.get(kind, steps.ended)[first])
        return cls([one.tolist() for one in tables.moves], answers)

    def led(self, states: States, label: int) -> States | None:
        """Return the states that a label leads to; None where it was never read there."""
        if label < 0:
            return states
        led = tuple(
            moves[state][label] if label < len(moves[state]) else -1
            for moves, state in zip(self.moves, states, strict=True)
        )
        return led if min(led) >= 0 else None

    def after(self, model: EmpiricalModel, episode: Episode) -> States | None:
        """Return the states that it is in after all labels of an episode."""
        states: States | None = (0,) * len(self.moves)
        for place in range(model.first, len(episode.labels) - model.lag):
            states = None if states is None else self.led(states, episode.labels[place])
        return states


def distinguishing_path(
    model: EmpiricalModel, row: int, states: States, rival: Alternative
) -> Path | None:
    """Return the shortest way over known steps to one that two machines answer differently.

    It begins in a situation that the other machines take for these states.
    """
    first = row, states
    came: dict[tuple[int, States], tuple[tuple[int, States], int] | None] = {first: None}
    waiting = deque([first])
    while waiting and len(came) < MAX_NODES:
        node = waiting.popleft()
        here, theirs = node
        observation, *own = model.augmented_states[here]
        for action, led in enumerate(model.next_row[here]):
            if differ(model, rival, observation, tuple(own), theirs, action):
                return _way(came, node, action)
            if led < 0:
                continue
            after = rival.led(theirs, model.label_read[here][action])
            if after is not None and (led, after) not in came:
                came[led, after] = node, action
                waiting.append((led, after))
    return None


def differ(
    model: EmpiricalModel,
    rival: Alternative,
    observation: int,
    own: States,
    theirs: States,
    action: int,
) -> bool:
    """Whether both know what a step brings, and do not agree on it."""
    for place in range(len(own)):
        mine = model.outputs.get(place, own, observation, action)
        other = rival.answers.get(place, theirs, observation, action)
        if mine is not None and other is not None and mine != other:
            return True
    return False


def _way(
    came: dict[tuple[int, States], tuple[tuple[int, States], int] | None],
    node: tuple[int, States],
    action: int,
) -> Path:
    steps = [(node[0], action)]
    while (before := came[node]) is not None:
        node, action = before
        steps.append((node[0], action))
    return Path(tuple(reversed(steps)), 1.0, DIFFER, node[0])


class AlternativeHypotheses:
    """The rivals of the machines that are believed in, one after another.

    Each is thought of once, until the machines change; `untold` counts those that no known
    step tells apart from what is believed.
    """

    def __init__(
        self, beliefs: Hypothesis, model: EmpiricalModel, under_way: Sequence[Episode]
    ) -> None:
        self.beliefs, self.model, self.under_way = beliefs, model, under_way
        self._others = self._thought_of()
        self._now: TransitionTables | None = None
        self.untold = 0
        self.over = False

    def way(self, row: int, episode: Episode, under_way: Sequence[Episode]) -> Path | None:
        """Return the way on from here that tells the next rival apart, if any is left.

        It is empty where another episode has to begin for that. The episode is one of those
        under way.
        """
        self.under_way = under_way
        while not self.over:
            self._now = self._now or next(self._others, None)
            if self._now is None:
                self.over = True
                return None
            columns, now = self._columns(), self._wide(self._now)
            if explains(now, QueriedSteps.of_columns(now, columns)):
                way = self._way(row, episode, Alternative.of(now, columns))
                if way is not None:
                    return way
                self.untold += 1
            self._now = None
        return None

    def _way(self, row: int, episode: Episode, rival: Alternative) -> Path | None:
        model = self.model
        theirs = rival.after(model, episode)
        way = None if theirs is None else distinguishing_path(model, row, theirs, rival)
        if way is not None:
            return way
        for start in model.starts:
            label = model.start_symbols[start][1] if model.first + model.lag == 0 else -1
            begun = rival.led((0,) * len(rival.moves), label)
            is_here = start == row and not len(episode)
            if begun and not is_here and distinguishing_path(model, start, begun, rival):
                return Path((), 0.0, "", UNKNOWN)
        return None

    def _columns(self) -> Columns:
        return self.beliefs.log.columns(0, self.under_way)

    def _wide(self, tables: TransitionTables) -> TransitionTables:
        """Return moves with a column for each label that was met up to now."""
        return tables.for_labels(len(self.beliefs.log.labels))

    def _thought_of(self) -> Iterator[TransitionTables]:
        believed, columns = self._wide(self.model.believed), self._columns()
        steps = QueriedSteps.of_columns(believed, columns)
        trials = max(MOST_WORK // max(columns.steps, 1), 1)
        for place, moves in enumerate(believed.moves):
            states = steps.walk(moves)
            before = np.roll(states, 1)
            before[steps.first] = 0
            read = (steps.read >= 0) & (before >= 0)
            times = np.zeros(moves.shape, np.int64)
            np.add.at(times, (before[read], steps.read[read]), 1)
            for move in np.argsort(times, axis=None, kind="stable").tolist():
                state, label = divmod(move, moves.shape[1])
                if moves[state, label] < 0 or label in self.model.neutral_labels:
                    continue
                for target in range(len(moves)):
                    if target == moves[state, label]:
                        continue
                    if not trials:
                        return
                    trials -= 1
                    yield from self._if_explains(believed, place, (state, label), target, steps)
        yield from self._inferred_otherwise()

    def _if_explains(
        self,
        believed: TransitionTables,
        place: int,
        move: tuple[int, int],
        target: int,
        steps: QueriedSteps,
    ) -> Iterator[TransitionTables]:
        """Lead one move elsewhere, and give that back if it explains everything as well."""
        moves = [one.copy() for one in believed.moves]
        moves[place][move] = target
        other = replace(believed, moves=tuple(moves))
        if explains(other, steps):
            yield other

    def _inferred_otherwise(self) -> Iterator[TransitionTables]:
        """Infer machines with another seed, once."""
        believed, log = self._wide(self.model.believed), self.beliefs.log
        other_seed = self.beliefs.options.seed + 1
        options = replace(self.beliefs.options, seed=other_seed, effort=EFFORT)
        try:
            found = TransitionTables.of(
                infer_with(options, log.traces(0, self.under_way)).machines, log
            )
        except ContradictoryTraces:  # mending has found what no inference does
            return
        if found.kinds == believed.kinds and sum(found.sizes) <= sum(believed.sizes):
            wide = self._wide(found)
            if explains(wide, QueriedSteps.of_columns(wide, self._columns())) and not _agree(
                wide, believed
            ):
                yield wide


def _agree(one: TransitionTables, other: TransitionTables) -> bool:
    """Whether two lead to the same states under other numbers, wherever both know."""
    for mine, theirs in zip(one.moves, other.moves, strict=True):
        partner = {0: 0}
        queue = [0]
        for state in queue:
            for target, twin in zip(mine[state], theirs[partner[state]], strict=True):
                if min(target, twin) < 0:
                    continue
                if target not in partner:
                    partner[int(target)] = int(twin)
                    queue.append(int(target))
                elif partner[target] != twin:
                    return False
        if len(set(partner.values())) < len(partner):
            return False
    return True
