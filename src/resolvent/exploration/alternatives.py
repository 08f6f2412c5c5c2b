"""Propose tests that distinguish the hypothesis from other machines that explain everything.

Each transition is redirected for a trial, and machines are inferred with another seed. If these
explain all steps, the next test is the shortest path to a step for which both predict different
outputs.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from resolvent.exploration.empirical_model import EmpiricalModel
from resolvent.exploration.hypothesis import EFFORT, Hypothesis, explains
from resolvent.exploration.search import RESET, Path, StepSearch
from resolvent.exploration.state import EpisodeState, LearnerState
from resolvent.exploration.tables import ObservedMachines, QueriedSteps, States, TransitionTables
from resolvent.inference.conflict import Conflict
from resolvent.inference.infer import try_infer
from resolvent.traces.vocabulary import Codes

DISTINGUISH: Final = "alternative machine"

MAX_STEPS_WALKED: Final = 40_000_000
"""Maximum number of steps replayed in trials of redirected transitions."""

MAX_NODES: Final = 50_000
"""Maximum number of nodes of a search: an augmented state and the alternative's states."""


def rule_out_alternatives(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Return the path that distinguishes the next alternative machines from the hypothesis."""
    selection = state.selection
    if selection.are_resets_useless:
        return None
    if selection.alternatives is None:
        selection.alternatives = AlternativeHypotheses(state.hypothesis, state.present_model())
    return selection.alternatives.path(episode)


def distinguishing_path(
    model: EmpiricalModel, row: int, states: States, alternative: ObservedMachines
) -> Path | None:
    """Return the shortest path to a step with different predictions, from a row and states."""
    search = StepSearch[tuple[int, States]]([(row, states)], MAX_NODES)
    for node in search:
        here, other_states = node
        observation, *own = model.augmented_states[here]
        for action, target in enumerate(model.next_row[here]):
            if model.machines.disagree(alternative, own, other_states, (observation, action)):
                return Path(search.steps_to(node, action), 1.0, DISTINGUISH)
            if target < 0:
                continue
            after = alternative.next_states(other_states, model.label_read[here][action])
            if after is not None:
                search.add((target, after), node, action)
    return None


class AlternativeHypotheses:
    """The alternatives to a hypothesis, one after another, until the machines change.

    `undistinguished` is the number of alternatives that no known step distinguishes.
    """

    def __init__(self, hypothesis: Hypothesis, model: EmpiricalModel) -> None:
        self.hypothesis, self.model, self.buffer = hypothesis, model, hypothesis.buffer
        self.undistinguished = 0
        self._candidates = self.candidates()
        self._current = next(self._candidates, None)

    def path(self, episode: EpisodeState) -> Path | None:
        """Return the path from an open episode that distinguishes the next alternative, if any."""
        while self._current is not None:
            tables = self._current.for_labels(len(self.buffer.labels))
            columns = self.buffer.columns()
            if explains(tables, QueriedSteps(columns, tables)):
                path = self._path_for(episode, ObservedMachines.of_steps(tables, columns))
                if path is not None:
                    return path
                self.undistinguished += 1
            self._current = next(self._candidates, None)
        return None

    def _path_for(self, episode: EpisodeState, alternative: ObservedMachines) -> Path | None:
        model, row = self.model, episode.row
        initial: States = (0,) * len(alternative.sizes)
        states: States | None = initial
        for label in model.labels_read(episode.recorded):
            states = None if states is None else alternative.next_states(states, label)
        path = None if states is None else distinguishing_path(model, row, states, alternative)
        if path is not None:
            return path
        for start in model.starts:
            label = model.start_symbols[start][1] if model.reads_first_label else -1
            begun = alternative.next_states(initial, label)
            is_here = start == row and not episode.length
            if begun and not is_here and distinguishing_path(model, start, begun, alternative):
                return RESET
        return None

    def candidates(self) -> Iterator[TransitionTables]:
        """Yield machines that explain all steps, those with rare transitions redirected first."""
        tables = self.model.tables.for_labels(len(self.buffer.labels))
        steps = QueriedSteps(self.buffer.columns(), tables)
        trials = max(MAX_STEPS_WALKED // max(len(steps.query), 1), 1)
        for machine, transitions in enumerate(tables.transitions):
            for state, label in _rarest_first(steps, transitions):
                target_now = transitions[state, label]
                if target_now < 0 or label in self.model.neutral_labels:
                    continue
                for target in (t for t in range(len(transitions)) if t != target_now):
                    if not trials:
                        return
                    trials -= 1
                    copies = [table.copy() for table in tables.transitions]
                    copies[machine][state, label] = target
                    redirected = replace(tables, transitions=tuple(copies))
                    if explains(redirected, steps):
                        yield redirected
        yield from self._inferred_with_other_seed(tables)

    def _inferred_with_other_seed(self, present: TransitionTables) -> Iterator[TransitionTables]:
        options = self.hypothesis.options
        options = replace(options, seed=options.seed + 1, effort=EFFORT)
        result = try_infer(options, self.buffer.traces())
        if isinstance(result, Conflict):  # repair may succeed where inference fails
            return
        tables = TransitionTables.of(result.machines, self.buffer)
        if (
            tables.names == present.names
            and sum(tables.sizes) <= sum(present.sizes)
            and explains(tables, QueriedSteps(self.buffer.columns(), tables))
            and not _are_isomorphic(tables, present)
        ):
            yield tables


def _rarest_first(steps: QueriedSteps, transitions: Codes) -> Iterator[tuple[int, int]]:
    """Yield state and label of all transitions, by the number of steps that take them."""
    states = steps.walk(transitions)
    before = np.roll(states, 1)
    before[steps.first] = 0
    is_read = (steps.label >= 0) & (before >= 0)
    times = np.zeros(transitions.shape, np.int64)
    np.add.at(times, (before[is_read], steps.label[is_read]), 1)
    for cell in np.argsort(times, axis=None, kind="stable").tolist():
        yield divmod(cell, transitions.shape[1])


def _are_isomorphic(tables: TransitionTables, twins: TransitionTables) -> bool:
    """Return whether both are equal up to the numbers of states, where both are defined."""
    for table, twin_table in zip(tables.transitions, twins.transitions, strict=True):
        partner, queue = {0: 0}, [0]
        for state in queue:
            pairs = zip(table[state].tolist(), twin_table[partner[state]].tolist(), strict=True)
            for target, twin in pairs:
                if min(target, twin) < 0:
                    continue
                if target not in partner:
                    partner[target] = twin
                    queue.append(target)
                elif partner[target] != twin:
                    return False
        if len(set(partner.values())) < len(partner):
            return False
    return True
