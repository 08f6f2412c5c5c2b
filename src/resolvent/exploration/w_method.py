"""Propose the tests of the W-method (Chow 1978), which rule out machines with more states.

With n more states, every word of n labels is read after the shortest label sequence to each state,
and every known query is asked. One label further, queries distinguish the state from every other.
A world within this number of states that passes all tests is that of the hypothesis, as far as
words can be read by known steps.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from resolvent.exploration.alternatives import (
    Alternative,
    States,
    outputs_differ,
)
from resolvent.exploration.buffer import Episode
from resolvent.exploration.empirical_model import UNKNOWN, EmpiricalModel
from resolvent.exploration.search import RESET, BreadthFirstSearch, Path
from resolvent.exploration.state import EpisodeState, LearnerState

RULE_OUT_STATES: Final = "whether there are more states"

MAX_NODES: Final = 20_000
"""Maximum number of nodes of a search, each an augmented state and the labels read before it."""

MAX_TESTS: Final = 5_000
"""Maximum number of tests; above, words are only sampled."""

N_RECENT: Final = 40
"""Number of latest episodes with a history that count for a test."""

NO_LABEL: Final = -1
"""Stands for the label before the first step if first labels are not read."""

QUERY: Final = -1
"""Stands for no machine: the test is a query, whether or not it distinguishes states."""

Word = tuple[int, ...]

_Steps = list[tuple[int, int, int]]
"""The label read before each step, the observation and the action."""


class WTest(NamedTuple):
    """Rules out another state of a machine after a history, or asks a query then.

    For a query, `machine` is `QUERY`, and `state` is the number of the query.
    """

    history: Word
    machine: int
    state: int


class _Node(NamedTuple):
    """An augmented state, the number of labels of the history read, and the other states."""

    row: int
    n_read: int
    other_states: States | None


def rule_out_more_states(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Return the path of the next test of the W-method, if the user gave a number of states.

    An empty path begins another episode for it.
    """
    if state.config.max_states is None or state.are_resets_useless:
        return None
    if state.w_method is None:
        state.w_method = WMethodTests(state.present_model(), state.config.max_states)
    return state.w_method.path(episode.row, episode.episode)


class WMethodTests:
    """The remaining tests, one after another.

    `n_tests` is the number of all tests, `is_complete` says whether they are all that the method
    needs, and `impossible` counts those for which no known step distinguishes the states.
    """

    def __init__(self, model: EmpiricalModel, max_states: int) -> None:
        self.model, self.max_states = model, max_states
        self.machines = Alternative(model.transitions, model.outputs)
        self.is_complete = max(model.sizes) <= max_states
        self.impossible = 0
        self._open = deque(self._all_tests())
        self.n_tests = len(self._open)
        longest = max((len(test.history) for test in self._open), default=0)
        self._histories = _Histories(model, longest)

    @property
    def proven(self) -> int | None:
        """Number of tests that rule out more states; None if words were only sampled."""
        return self.n_tests if self.is_complete and not self.impossible else None

    def path(self, row: int, episode: Episode) -> Path | None:
        """Return the path that makes the next test; `RESET` if another episode is to make it."""
        histories = self._histories
        histories.update()
        read = histories.labels_of(episode)
        while self._open:
            test = self._open[0]
            if not histories.was_made(test, self.machines, episode):
                path = self._path_for(test, row, read) or self._from_start(test, row, episode)
                if path is not None:
                    return path
                self.impossible += 1
            self._open.popleft()
        return None

    def _from_start(self, test: WTest, row: int, episode: Episode) -> Path | None:
        for start in self.model.starts:
            is_here = start == row and not len(episode)
            if not is_here and self._path_for(test, start, self._first_labels(start)) is not None:
                return RESET
        return None

    def _first_labels(self, start: int) -> Word:
        """Return the labels read at a start."""
        model = self.model
        label = model.start_symbols[start][1]
        return (label,) if model.reads_first_label and label not in model.neutral_labels else ()

    def _path_for(self, test: WTest, row: int, read: Word) -> Path | None:
        """Return the shortest path that reads the rest of a history and then makes the test."""
        model, history = self.model, test.history
        if history[: len(read)] != read:
            return None
        first = _Node(row, len(read), self._other_states(test, row, len(read)))
        search = BreadthFirstSearch[_Node]([first], MAX_NODES)
        for node in search:
            here, _, other_states = node
            for action, target in enumerate(model.next_row[here]):
                if other_states is not None and self._makes(test, here, other_states, action):
                    return Path(search.steps_to(node, action), 1.0, RULE_OUT_STATES)
                if target < 0:
                    continue
                after = self._after(test, node, target, model.label_read[here][action])
                if after is not None:
                    search.add(after, node, action)
        return None

    def _makes(self, test: WTest, row: int, other_states: States, action: int) -> bool:
        """Return whether a step makes a test."""
        model = self.model
        observation, *own = model.augmented_states[row]
        if test.machine == QUERY:
            return model.query_number(observation, action) == test.state
        return outputs_differ(model, self.machines, observation, tuple(own), other_states, action)

    def _after(self, test: WTest, node: _Node, target: int, label: int) -> _Node | None:
        is_neutral = label < 0 or label in self.model.neutral_labels
        if node.other_states is not None:
            if test.machine == QUERY and not is_neutral:
                return None
            other_states = self.machines.next_states(node.other_states, label)
            return None if other_states is None else _Node(target, node.n_read, other_states)
        if is_neutral:
            return _Node(target, node.n_read, None)
        if test.history[node.n_read] != label:
            return None
        n_read = node.n_read + 1
        return _Node(target, n_read, self._other_states(test, target, n_read))

    def _other_states(self, test: WTest, row: int, n_read: int) -> States | None:
        """Return the other states once the history is read; None before."""
        if n_read < len(test.history):
            return None
        return _replaced(self.model.augmented_states[row][1:], test)

    def _all_tests(self) -> list[WTest]:
        model = self.model
        access = self._access_sequences()
        n_more = [max(self.max_states - size, 0) + 1 for size in model.sizes]
        prefixes = {
            word[:length]
            for sequences in access
            for word in sequences.values()
            for length in range(len(word) + 1)
        }
        machines = range(len(model.sizes))
        search = BreadthFirstSearch[tuple[int, Word]](
            sorted({(start, self._first_labels(start)) for start in model.starts})
        )
        tests = dict[WTest, None]()
        for node in search:
            row, history = node
            excess = [_excess(history, sequences) for sequences in access]
            for machine in machines:
                if excess[machine] <= n_more[machine]:
                    for other_state in range(model.sizes[machine]):
                        if other_state != model.augmented_states[row][1 + machine]:
                            tests[WTest(history, machine, other_state)] = None
            asks = any(excess[machine] < n_more[machine] for machine in machines)
            for action, target in enumerate(model.next_row[row]):
                label = model.label_read[row][action]
                if asks and target != UNKNOWN:
                    query = model.query_number(model.augmented_states[row][0], action)
                    tests[WTest(history, QUERY, query)] = None
                if target < 0:
                    continue
                is_neutral = label < 0 or label in model.neutral_labels
                after = history if is_neutral else (*history, label)
                if (target, after) not in search.parents and (
                    after in prefixes
                    or any(_excess(after, access[index]) <= n_more[index] for index in machines)
                ):
                    search.add((target, after), node, action)
            if len(search.parents) > MAX_NODES or len(tests) > MAX_TESTS:
                self.is_complete = False
                return []
        return sorted(tests, key=lambda test: (len(test.history), test))

    def _access_sequences(self) -> list[dict[int, Word]]:
        """Return for each machine a label sequence to each reachable state."""
        model = self.model
        words = {start: self._first_labels(start) for start in model.starts}
        search = BreadthFirstSearch[int](words)
        access: list[dict[int, Word]] = [{} for _ in model.sizes]
        for row in search:
            for sequences, state in zip(access, model.augmented_states[row][1:], strict=True):
                sequences.setdefault(state, words[row])
            for action, target in enumerate(model.next_row[row]):
                if target >= 0 and target not in words:
                    label = model.label_read[row][action]
                    is_neutral = label < 0 or label in model.neutral_labels
                    words[target] = words[row] if is_neutral else (*words[row], label)
                    search.add(target, row, action)
        return access


def _excess(history: Word, sequences: dict[int, Word]) -> float:
    """Return the number of labels of a history after the longest of its access sequences."""
    lengths = [len(word) for word in sequences.values() if history[: len(word)] == word]
    return len(history) - max(lengths) if lengths else float("inf")


class _Histories:
    """The latest episodes that began with each label sequence."""

    def __init__(self, model: EmpiricalModel, longest: int) -> None:
        self.model, self.longest = model, longest
        self._episodes: dict[Word, deque[tuple[_Steps, int]]] = {}
        self._asked: dict[Word, set[int]] = {}
        self._n_read = 0

    def update(self) -> None:
        """Read the episodes closed since the last call."""
        buffer = self.model.buffer
        columns = buffer.columns(self._n_read)
        labels, observations, actions = (
            column.tolist() for column in (columns.labels, columns.observations, columns.actions)
        )
        for number, (first, stop) in enumerate(pairwise(columns.offsets.tolist())):
            span = slice(first + number, stop + number)
            steps = self._steps(labels[span], observations[span], actions[first:stop])
            for history, step in self._histories_of(steps):
                latest = self._episodes.setdefault(history, deque(maxlen=N_RECENT))
                latest.appendleft((steps, step))
            for history, query in self._queries_of(steps):
                self._asked.setdefault(history, set()).add(query)
        self._n_read = buffer.episodes

    def labels_of(self, episode: Episode) -> Word:
        """Return the labels read so far in an episode, as the next step reads them."""
        steps = self._steps(episode.labels, episode.observations, [*episode.actions, 0])
        neutral = self.model.neutral_labels
        return tuple(label for label, *_ in steps if label >= 0 and label not in neutral)

    def was_made(self, test: WTest, machines: Alternative, episode: Episode) -> bool:
        """Return whether outputs ruled out the other state, or the query was asked."""
        current = self._steps(episode.labels, episode.observations, episode.actions)
        if test.machine == QUERY:
            is_asked = test.state in self._asked.get(test.history, ())
            return is_asked or (test.history, test.state) in self._queries_of(current)
        now = [
            (current, step)
            for history, step in self._histories_of(current)
            if history == test.history
        ]
        return any(
            self._rules_out(steps, step, test, machines)
            for steps, step in (*now, *self._episodes.get(test.history, ()))
        )

    def _steps(
        self, labels: Sequence[int], observations: Sequence[int], actions: Sequence[int]
    ) -> _Steps:
        """Return the label read just before each step, -1 for none, and the query."""
        first, lag = self.model.first, self.model.lag
        return [
            (labels[step - lag] if step - lag >= first else NO_LABEL, observations[step], action)
            for step, action in enumerate(actions)
        ]

    def _histories_of(self, steps: _Steps) -> Iterator[tuple[Word, int]]:
        """Yield the label sequences that were read, and the step before which each was."""
        history, neutral = list[int](), self.model.neutral_labels
        for step, (label, *_) in enumerate(steps):
            if label >= 0 and label not in neutral:
                history.append(label)
            elif step:
                continue
            if len(history) > self.longest:
                return
            yield tuple(history), step

    def _queries_of(self, steps: _Steps) -> Iterator[tuple[Word, int]]:
        """Yield the label sequence before each query, and the number of the query."""
        history, model = list[int](), self.model
        for label, observation, action in steps:
            if label >= 0 and label not in model.neutral_labels:
                history.append(label)
            if len(history) > self.longest:
                return
            yield tuple(history), model.query_number(observation, action)

    def _rules_out(self, steps: _Steps, first: int, test: WTest, machines: Alternative) -> bool:
        states: States | None = (0,) * len(machines.transitions)
        other_states: States | None = None
        for step, (label, observation, action) in enumerate(steps):
            states = None if states is None else machines.next_states(states, label)
            if states is None:
                return False
            if step == first:
                other_states = _replaced(states, test)
            elif other_states is not None:
                other_states = machines.next_states(other_states, label)
                if other_states is None:
                    return False
            if other_states is not None and outputs_differ(
                self.model, machines, observation, states, other_states, action
            ):
                return True
        return False


def _replaced(states: Sequence[int], test: WTest) -> States:
    """Return the states with one of them replaced by that of a test."""
    if test.machine == QUERY:
        return tuple(states)
    return (*states[: test.machine], test.state, *states[test.machine + 1 :])
