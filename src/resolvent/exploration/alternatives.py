"""Propose tests that rule out other machines than those of the hypothesis.

Alternative machines explain everything, too: each transition is redirected for a trial, and
machines are inferred with another seed. If these explain all steps, the next test is the shortest
path to a step for which both predict different outputs.

Machines with more states are ruled out by the W-method (Chow 1978). With n more states, every word
of n labels is read after the shortest label sequence to each state, and every known query is asked.
One label further, queries distinguish the state from every other. A world within this number of
states that passes all tests is that of the hypothesis, as far as words can be read by known steps.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from resolvent.exploration.buffer import Episode
from resolvent.exploration.empirical_model import RESET, UNKNOWN, EmpiricalModel, Path, StepSearch
from resolvent.exploration.hypothesis import EFFORT, Hypothesis, explains
from resolvent.exploration.state import EpisodeState, LearnerState
from resolvent.exploration.tables import (
    ObservedMachines,
    QueriedSteps,
    Query,
    States,
    TransitionTables,
)
from resolvent.inference.conflict import Conflict
from resolvent.inference.infer import try_infer
from resolvent.machines.memory import BreadthFirstSearch
from resolvent.traces.vocabulary import Codes

DISTINGUISH: Final = "alternative machine"
MAX_STEPS_WALKED: Final = 40_000_000  # maximum number of steps replayed in trials
MAX_PATH_NODES: Final = 50_000  # maximum number of nodes of a search for a distinguishing path
RULE_OUT_STATES: Final = "W-method test"
MAX_NODES: Final = 20_000  # maximum number of nodes of a search
MAX_TESTS: Final = 5_000  # maximum number of tests; above, words are only sampled
N_RECENT: Final = 40  # number of latest episodes with a label sequence that count for a test
Word = tuple[int, ...]
_Steps = list[tuple[int, Query]]  # the label read before each step, -1 for none, and the query


def rule_out_alternatives(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Return the path that distinguishes the next alternative machines from the hypothesis."""
    selection = state.selection
    if selection.are_resets_useless:
        return None
    if selection.alternatives is None:
        selection.alternatives = AlternativeHypotheses(state.hypothesis, state.present_model())
    return selection.alternatives.path(episode)


def distinguishing_path(
    model: EmpiricalModel, row: int, states: States | None, alternative: ObservedMachines
) -> Path | None:
    """Return the shortest path to a step with different predictions, from a row and states."""
    if states is None:
        return None
    search = StepSearch[tuple[int, States]]([(row, states)], MAX_PATH_NODES)
    for node in search:
        here, other_states = node
        observation, *own = model.augmented_states[here]
        for action, target in enumerate(model.next_row[here]):
            if model.machines.disagree(alternative, own, other_states, (observation, action)):
                return search.path(node, action, DISTINGUISH)
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
            steps = QueriedSteps(self.buffer.columns(), tables)
            if explains(tables, steps):
                path = self._path_for(episode, ObservedMachines.of_steps(tables, steps))
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
            states = states and alternative.next_states(states, label)
        path = distinguishing_path(model, row, states, alternative)
        if path is not None:
            return path
        for start, (_, label) in model.start_symbols.items():
            begun = alternative.next_states(initial, label if model.reads_first_label else -1)
            is_here = start == row and not episode.length
            if not is_here and distinguishing_path(model, start, begun, alternative):
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
    before = steps.states_before(steps.walk(transitions))
    is_read = (steps.label >= 0) & (before >= 0)
    times = np.zeros(transitions.shape, np.int64)
    np.add.at(times, (before[is_read], steps.label[is_read]), 1)
    for cell in np.argsort(times, axis=None, kind="stable").tolist():
        yield divmod(cell, transitions.shape[1])


def _are_isomorphic(tables: TransitionTables, twins: TransitionTables) -> bool:
    """Return whether both are equal up to the numbers of states, where both are defined."""
    for table, twin_table in zip(tables.transitions, twins.transitions, strict=True):
        search = BreadthFirstSearch[tuple[int, int], None]([(0, 0)])
        for node in search:
            for pair in zip(table[node[0]].tolist(), twin_table[node[1]].tolist(), strict=True):
                if min(pair) >= 0:
                    search.add(pair, node, None)
        states, twin_states = map(set, zip(*search.parents, strict=True))
        if min(len(states), len(twin_states)) < len(search.parents):
            return False
    return True


class WTest(NamedTuple):
    """Rules out another state of a machine after some labels, or makes a query after them.

    For a query, machine and state are -1: it counts whether or not it distinguishes states.
    """

    labels: Word
    machine: int
    state: int
    query: Query | None = None

    def replaced(self, states: Sequence[int]) -> States:
        """Return the states with one of them replaced by that of the test."""
        if self.query is not None:
            return tuple(states)
        return (*states[: self.machine], self.state, *states[self.machine + 1 :])


class _Node(NamedTuple):
    """An augmented state, the number of labels of the test read, and the other states."""

    row: int
    n_read: int
    other_states: States | None


def rule_out_more_states(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Return the path of the next test of the W-method, if the user gave a number of states.

    `RESET` begins another episode for it.
    """
    selection = state.selection
    if state.config.max_states is None or selection.are_resets_useless:
        return None
    if selection.w_method is None:
        selection.w_method = WMethodTests(state.present_model(), state.config.max_states)
    return selection.w_method.path(episode.row, episode.recorded)


class WMethodTests:
    """The remaining tests, one after another.

    `n_tests` is the number of all tests, `is_complete` says whether they are all that the method
    needs, and `impossible` counts those for which no known step distinguishes the states. `_latest`
    are the latest episodes that read each label sequence, and `_queries` those observed after it.
    """

    def __init__(self, model: EmpiricalModel, max_states: int) -> None:
        self.model, self.max_states = model, max_states
        self.is_complete = max(model.sizes) <= max_states
        self.impossible = 0
        self._open = deque(self._all_tests())
        self.n_tests = len(self._open)
        self._longest = max((len(test.labels) for test in self._open), default=0)
        self._latest: dict[Word, deque[tuple[_Steps, int]]] = {}
        self._queries: dict[Word, set[Query]] = {}
        self._n_episodes = 0

    @property
    def proven(self) -> int | None:
        """Number of tests that rule out more states; None if words were only sampled."""
        return self.n_tests if self.is_complete and not self.impossible else None

    def path(self, row: int, episode: Episode) -> Path | None:
        """Return the path that makes the next test; `RESET` if another episode is to make it."""
        model = self.model
        self._read_episodes()
        read = model.without_neutral(model.labels_read(episode))
        while self._open:
            test = self._open[0]
            if not self._was_made(test, episode):
                path = self._path_for(test, row, read)
                if path is not None:
                    return path
                for start in model.starts:
                    is_here = start == row and not len(episode)
                    if not is_here and self._path_for(test, start, model.first_word(start)):
                        return RESET
                self.impossible += 1
            self._open.popleft()
        return None

    def _path_for(self, test: WTest, row: int, read: Word) -> Path | None:
        """Return the shortest path that reads the rest of the labels and then makes the test."""
        model = self.model
        if test.labels[: len(read)] != read:
            return None
        search = StepSearch[_Node]([self._node(test, row, len(read))], MAX_NODES)
        for node in search:
            here, _, other_states = node
            observation, *states = model.augmented_states[here]
            for action, target in enumerate(model.next_row[here]):
                query = observation, action
                if other_states is not None and (
                    query == test.query
                    if test.query is not None
                    else model.machines.disagree(model.machines, states, other_states, query)
                ):
                    return search.path(node, action, RULE_OUT_STATES)
                if target < 0:
                    continue
                after = self._after(test, node, target, model.label_read[here][action])
                if after is not None:
                    search.add(after, node, action)
        return None

    def _after(self, test: WTest, node: _Node, target: int, label: int) -> _Node | None:
        """Return the node after a step; None if it is of no use for the test."""
        is_read, n_read = label >= 0 and label not in self.model.neutral_labels, node.n_read
        if node.other_states is not None:
            if test.query is not None and is_read:
                return None
            other_states = self.model.machines.next_states(node.other_states, label)
            return None if other_states is None else _Node(target, n_read, other_states)
        if is_read and test.labels[n_read] != label:
            return None
        return self._node(test, target, n_read + is_read)

    def _node(self, test: WTest, row: int, n_read: int) -> _Node:
        """Return a node, with the other states once all labels are read."""
        if n_read < len(test.labels):
            return _Node(row, n_read, None)
        return _Node(row, n_read, test.replaced(self.model.augmented_states[row][1:]))

    def _all_tests(self) -> list[WTest]:
        model = self.model
        access = self._access_sequences()

        def open_labels(word: Word) -> list[float]:
            """Return the number of labels that may follow a word, for each machine."""
            parts = zip(model.sizes, access, strict=True)
            return [
                max(self.max_states - size, 0) + 1 - _excess(word, sequences)
                for size, sequences in parts
            ]

        prefixes = {
            word[:length]
            for sequences in access
            for word in sequences.values()
            for length in range(len(word) + 1)
        }
        starts = sorted((start, model.first_word(start)) for start in model.starts)
        search, tests = StepSearch[tuple[int, Word]](starts), dict[WTest, None]()
        for row, word in search:
            observation, *states = model.augmented_states[row]
            n_open = open_labels(word)
            for machine, size in enumerate(model.sizes):
                if n_open[machine] >= 0:
                    others = (state for state in range(size) if state != states[machine])
                    tests.update((WTest(word, machine, state), None) for state in others)
            for action, target in enumerate(model.next_row[row]):
                if max(n_open) > 0 and target != UNKNOWN:
                    tests[WTest(word, -1, -1, (observation, action))] = None
                node = target, model.next_word(word, model.label_read[row][action])
                if target < 0 or node in search.parents:
                    continue
                if node[1] in prefixes or max(open_labels(node[1])) >= 0:
                    search.add(node, (row, word), action)
            if len(search.parents) > MAX_NODES or len(tests) > MAX_TESTS:
                self.is_complete = False
                return []
        return sorted(tests, key=lambda test: (len(test.labels), test))

    def _access_sequences(self) -> list[dict[int, Word]]:
        """Return for each machine a label sequence to each reachable state."""
        model = self.model
        words = {start: model.first_word(start) for start in model.starts}
        search = StepSearch[int](words)
        access: list[dict[int, Word]] = [{} for _ in model.sizes]
        for row in search:
            for sequences, state in zip(access, model.augmented_states[row][1:], strict=True):
                sequences.setdefault(state, words[row])
            for action, target, label in model.steps_from(row):
                words.setdefault(target, model.next_word(words[row], label))
                search.add(target, row, action)
        return access

    def _read_episodes(self) -> None:
        """Read the episodes closed since the last call."""
        for episode in self.model.buffer.closed_episodes(self._n_episodes):
            steps = self._steps(episode)
            for word, step, is_first in self._words(steps):
                self._queries.setdefault(word, set()).add(steps[step][1])
                if is_first:
                    latest = self._latest.setdefault(word, deque(maxlen=N_RECENT))
                    latest.appendleft((steps, step))
        self._n_episodes = self.model.buffer.episodes

    def _was_made(self, test: WTest, episode: Episode) -> bool:
        """Return whether outputs ruled out the other state, or the query was observed."""
        current = self._steps(episode)
        now = [words for words in self._words(current) if words[0] == test.labels]
        if test.query is not None:
            is_observed = test.query in self._queries.get(test.labels, ())
            return is_observed or any(current[step][1] == test.query for _, step, _ in now)
        latest = [(current, step) for _, step, is_first in now if is_first]
        return any(
            self._rules_out(steps, step, test)
            for steps, step in (*latest, *self._latest.get(test.labels, ()))
        )

    def _steps(self, episode: Episode) -> _Steps:
        """Return the label read just before each step, and the query."""
        first, lag, labels = self.model.first, self.model.lag, episode.labels
        steps = range(len(episode.actions))
        read = (labels[step - lag] if step - lag >= first else -1 for step in steps)
        queries = zip(episode.observations, episode.actions, strict=False)
        return list(zip(read, queries, strict=True))

    def _words(self, steps: _Steps) -> Iterator[tuple[Word, int, bool]]:
        """Yield the labels read before each step, and whether it is the first one after them."""
        word: Word = ()
        for step, (label, _) in enumerate(steps):
            before, word = word, self.model.next_word(word, label)
            if len(word) > self._longest:
                return
            yield word, step, word is not before or step == 0

    def _rules_out(self, steps: _Steps, first: int, test: WTest) -> bool:
        machines = self.model.machines
        states: States = (0,) * len(machines.sizes)
        other_states: States | None = None
        for step, (label, query) in enumerate(steps):
            reached = machines.next_states(states, label)
            if reached is None:
                return False
            states = reached
            if step == first:
                other_states = test.replaced(states)
            elif other_states is not None:
                other_states = machines.next_states(other_states, label)
                if other_states is None:
                    return False
            if other_states and machines.disagree(machines, states, other_states, query):
                return True
        return False


def _excess(word: Word, sequences: dict[int, Word]) -> float:
    """Return the number of labels of a word after the longest of its access sequences."""
    lengths = [len(access) for access in sequences.values() if word[: len(access)] == access]
    return len(word) - max(lengths) if lengths else float("inf")
