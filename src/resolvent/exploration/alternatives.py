"""Propose tests that distinguish the hypothesis from other machines that explain everything.

Each transition is redirected for a trial, and machines are inferred with another seed. If these
explain all steps, the next test is the shortest path to a step for which both predict different
outputs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from resolvent import _core
from resolvent.exploration.buffer import Columns, Episode
from resolvent.exploration.empirical_model import EmpiricalModel
from resolvent.exploration.hypothesis import EFFORT, Hypothesis
from resolvent.exploration.repair import explains
from resolvent.exploration.search import RESET, BreadthFirstSearch, Path
from resolvent.exploration.state import EpisodeState, LearnerState
from resolvent.exploration.tables import OutputTable, QueriedSteps, TransitionTables
from resolvent.inference.conflict import Conflict
from resolvent.inference.infer import try_infer

DISTINGUISH: Final = "which of two machines is right"

MAX_STEPS_WALKED: Final = 40_000_000
"""Maximum number of steps replayed in trials of redirected transitions."""

MAX_NODES: Final = 50_000
"""Maximum number of nodes of a search: an augmented state and the alternative's states."""

States = tuple[int, ...]


def rule_out_alternatives(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Return the path that distinguishes the next alternative machines from the hypothesis."""
    if state.are_resets_useless:
        return None
    if state.alternatives is None:
        state.alternatives = AlternativeHypotheses(
            state.hypothesis, state.present_model(), state.open_episodes
        )
    return state.alternatives.path(episode.row, episode.episode, state.open_episodes)


@dataclass(frozen=True, eq=False)
class Alternative:
    """Other machines that explain all steps, and their outputs."""

    transitions: list[list[list[int]]]
    outputs: OutputTable

    @classmethod
    def of(cls, tables: TransitionTables, columns: Columns) -> "Alternative":
        """Return the machines with these transitions, and the outputs that the steps show."""
        steps = QueriedSteps.of_columns(tables, columns)
        states = [steps.walk(transitions) for transitions in tables.transitions]
        values: dict[str, Any] = {
            "transition": columns.observations_after,
            "reward": columns.rewards,
        }
        outputs = OutputTable(tables.sizes, columns.n_actions)
        key = np.ravel_multi_index((*states, steps.query), (*tables.sizes, steps.n_queries))
        first, _ = _core.numbered(key)
        queries = (
            [column[first] for column in states],
            columns.observations_before[first],
            columns.actions[first],
        )
        for machine, name in enumerate(tables.names):
            outputs.note_all(machine, *queries, values.get(name, steps.terminated)[first])
        return cls([transitions.tolist() for transitions in tables.transitions], outputs)

    def next_states(self, states: States, label: int) -> States | None:
        """Return the states reached by reading a label; None if it was never read there."""
        if label < 0:
            return states
        targets = tuple(
            transitions[state][label] if label < len(transitions[state]) else -1
            for transitions, state in zip(self.transitions, states, strict=True)
        )
        return targets if min(targets) >= 0 else None

    def states_after(self, model: EmpiricalModel, episode: Episode) -> States | None:
        """Return the states after all labels of an episode."""
        states: States | None = (0,) * len(self.transitions)
        for position in range(model.first, len(episode.labels) - model.lag):
            states = None if states is None else self.next_states(states, episode.labels[position])
        return states


def distinguishing_path(
    model: EmpiricalModel, row: int, states: States, alternative: Alternative
) -> Path | None:
    """Return the shortest path to a step with different predictions.

    It starts in the augmented state `row`, with the alternative in `states`.
    """
    search = BreadthFirstSearch[tuple[int, States]]([(row, states)], MAX_NODES)
    for node in search:
        here, other_states = node
        observation, *own = model.augmented_states[here]
        for action, target in enumerate(model.next_row[here]):
            if outputs_differ(model, alternative, observation, tuple(own), other_states, action):
                return Path(search.steps_to(node, action), 1.0, DISTINGUISH)
            if target < 0:
                continue
            after = alternative.next_states(other_states, model.label_read[here][action])
            if after is not None:
                search.add((target, after), node, action)
    return None


def outputs_differ(
    model: EmpiricalModel,
    alternative: Alternative,
    observation: int,
    states: States,
    other_states: States,
    action: int,
) -> bool:
    """Return whether both predict an output of a step and disagree."""
    for machine in range(len(states)):
        output = model.outputs.get(machine, states, observation, action)
        other_output = alternative.outputs.get(machine, other_states, observation, action)
        if output is not None and other_output is not None and output != other_output:
            return True
    return False


class AlternativeHypotheses:
    """The alternatives to a hypothesis, one after another, until the machines change.

    `undistinguished` is the number of alternatives that no known step distinguishes.
    """

    def __init__(
        self, hypothesis: Hypothesis, model: EmpiricalModel, open_episodes: Sequence[Episode]
    ) -> None:
        self.hypothesis, self.model, self.open_episodes = hypothesis, model, open_episodes
        self.undistinguished = 0
        self._candidates = self.candidates()
        self._current: TransitionTables | None = None
        self._exhausted = False

    def path(self, row: int, episode: Episode, open_episodes: Sequence[Episode]) -> Path | None:
        """Return the path that distinguishes the next alternative, if any is left.

        The episode is one of those that are open.
        """
        self.open_episodes = open_episodes
        while not self._exhausted:
            self._current = self._current or next(self._candidates, None)
            if self._current is None:
                self._exhausted = True
                return None
            columns, tables = self._columns(), self._widened(self._current)
            if explains(tables, QueriedSteps.of_columns(tables, columns)):
                path = self._path_for(row, episode, Alternative.of(tables, columns))
                if path is not None:
                    return path
                self.undistinguished += 1
            self._current = None
        return None

    def _path_for(self, row: int, episode: Episode, alternative: Alternative) -> Path | None:
        model = self.model
        states = alternative.states_after(model, episode)
        path = None if states is None else distinguishing_path(model, row, states, alternative)
        if path is not None:
            return path
        for start in model.starts:
            label = model.start_symbols[start][1] if model.reads_first_label else -1
            begun = alternative.next_states((0,) * len(alternative.transitions), label)
            is_here = start == row and not len(episode)
            if begun and not is_here and distinguishing_path(model, start, begun, alternative):
                return RESET
        return None

    def _columns(self) -> Columns:
        return self.hypothesis.buffer.columns(0, self.open_episodes)

    def _widened(self, tables: TransitionTables) -> TransitionTables:
        """Return transitions with a column for each label up to now."""
        return tables.for_labels(len(self.hypothesis.buffer.labels))

    def candidates(self) -> Iterator[TransitionTables]:
        """Yield machines that explain all steps, those with rare transitions redirected first."""
        believed, columns = self._widened(self.model.tables), self._columns()
        steps = QueriedSteps.of_columns(believed, columns)
        trials = max(MAX_STEPS_WALKED // max(columns.steps, 1), 1)
        for machine, transitions in enumerate(believed.transitions):
            states = steps.walk(transitions)
            before = np.roll(states, 1)
            before[steps.first] = 0
            read = (steps.label >= 0) & (before >= 0)
            times = np.zeros(transitions.shape, np.int64)
            np.add.at(times, (before[read], steps.label[read]), 1)
            for cell in np.argsort(times, axis=None, kind="stable").tolist():
                state, label = divmod(cell, transitions.shape[1])
                if transitions[state, label] < 0 or label in self.model.neutral_labels:
                    continue
                for target in range(len(transitions)):
                    if target == transitions[state, label]:
                        continue
                    if not trials:
                        return
                    trials -= 1
                    tables = _redirected(believed, machine, (state, label), target)
                    if explains(tables, steps):
                        yield tables
        yield from self._inferred_with_other_seed()

    def _inferred_with_other_seed(self) -> Iterator[TransitionTables]:
        believed, hypothesis = self._widened(self.model.tables), self.hypothesis
        options = replace(hypothesis.options, seed=hypothesis.options.seed + 1, effort=EFFORT)
        traces = hypothesis.buffer.traces(0, self.open_episodes)
        result = try_infer(options, traces)
        if isinstance(result, Conflict):  # repair may succeed where inference fails
            return
        tables = TransitionTables.of(result.machines, hypothesis.buffer)
        if tables.names == believed.names and sum(tables.sizes) <= sum(believed.sizes):
            wide = self._widened(tables)
            steps = QueriedSteps.of_columns(wide, self._columns())
            if explains(wide, steps) and not _are_isomorphic(wide, believed):
                yield wide


def _redirected(
    tables: TransitionTables, machine: int, transition: tuple[int, int], target: int
) -> TransitionTables:
    """Return the tables with one transition to another state."""
    transitions = [table.copy() for table in tables.transitions]
    transitions[machine][transition] = target
    return replace(tables, transitions=tuple(transitions))


def _are_isomorphic(tables: TransitionTables, twins: TransitionTables) -> bool:
    """Return whether both are equal up to the numbers of states, where both are defined."""
    for table, twin_table in zip(tables.transitions, twins.transitions, strict=True):
        partner = {0: 0}
        queue = [0]
        for state in queue:
            for target, twin in zip(table[state], twin_table[partner[state]], strict=True):
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
