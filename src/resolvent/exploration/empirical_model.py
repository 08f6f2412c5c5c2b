"""The outcome of every step taken so far, by augmented state and action, and paths over them.

An augmented state is an observation with the states of the machines that matter for acting.
Adding a step is cheap while the machines stay the same; when they change, the model is computed
again from the distinct steps among all.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from resolvent import _core
from resolvent.exploration.buffer import Buffer, Columns, Episode
from resolvent.exploration.tables import (
    Flags,
    ObservedMachines,
    QueriedSteps,
    Query,
    States,
    TransitionTables,
)
from resolvent.machines.memory import BreadthFirstSearch
from resolvent.planning.deterministic import OptimalPolicy, solve
from resolvent.replay.counts import pack_rows
from resolvent.traces.symbols import NO_EVENT
from resolvent.traces.vocabulary import Codes, distinct_pairs

UNKNOWN: Final = -2  # next row of a step never taken, or with a random outcome
ENDS: Final = -1  # stands for the next row where a step terminates the episode
VARIES: Final = -2  # stands for the label of an observation that has several
MANY_LABELS: Final = 16  # number of labels above which neutral ones need not be `NO_EVENT`
Context: TypeAlias = tuple[int, ...]  # last label and states before; or -1 and a start
Step: TypeAlias = tuple[int, int]  # the row of an augmented state, and an action
Node = TypeVar("Node", bound=int | tuple[Any, ...])  # a row, or a tuple that begins with one
Checked: TypeAlias = Context | tuple[Context, int]  # a context, or one and the label after it


class Outcome(NamedTuple):
    """The outcome of a step; `label_read` is the label read after it, by the label timing."""

    observation: int
    label: int
    label_read: int
    reward: float
    terminated: bool


class StepEffect(NamedTuple):
    """The row reached by a step, whether it is news, and whether it contradicts the machines."""

    next_row: int
    is_new: bool
    contradicts: bool = False


@dataclass(frozen=True, eq=False)
class KnownSteps:
    """Next row, reward, and whether the outcome is known, by row and action."""

    next_row: Codes
    reward: NDArray[np.float64]
    is_known: Flags
    gamma: float

    def solve(self, unknown: float, actions: Any = slice(None)) -> OptimalPolicy:
        """Return the best policy if unknown steps end with a reward; of equal actions the first."""
        reward = np.where(self.is_known, self.reward, unknown)
        return solve(self.next_row[:, actions], reward[:, actions], self.gamma)

    def action_values(self, value: NDArray[np.float64], unknown: float) -> NDArray[np.float64]:
        """Return the value of each action by the values of the next rows, or of unknown steps."""
        after = np.append(value, 0.0)[self.next_row]
        return np.where(self.is_known, self.reward + self.gamma * after, unknown)


@dataclass(frozen=True)
class Path:
    """Steps to take one after another; the last one serves the purpose.

    Paths to unknown steps have a rate: their use per step.
    """

    steps: tuple[Step, ...]
    purpose: str = ""
    rate: float = 0.0


RESET: Final = Path(())  # stands for a test to make in another episode


class StepSearch(BreadthFirstSearch[Node, int]):
    """A breadth-first search over known steps."""

    def steps_to(self, node: Node, action: int) -> tuple[Step, ...]:
        """Return the steps from a start to a node, and then the action."""
        path = [*self.path_to(node), (node, action)]
        return tuple((node if isinstance(node, int) else int(node[0]), edge) for node, edge in path)

    def path(self, node: Node, action: int, purpose: str, rate: float = 0.0) -> Path:
        """Return the path from a start to a node, and then the action."""
        return Path(self.steps_to(node, action), purpose, rate)


class EmpiricalModel:
    """The outcome of every step by row and action; a row is the number of an augmented state.

    A *neutral* label changes no state and opens no context. An *informative* query has an unusual
    reward, terminates an episode, or has an outcome that varies.

    `starts` has the number of episodes that started in each row, and `start_symbols` the first
    observation and label of each. `last_outcome` is the last observation after each query, and
    `label_of` the label of each observation, or `VARIES`. `last_reward` has the last reward by
    reward state and label, with and without the action, and whether the step ended the episode.
    `labels_in_order` are the labels of all episodes without neutral ones and repetitions, and -1
    after each episode.
    """

    def __init__(self, tables: TransitionTables, buffer: Buffer, usual_reward: float) -> None:
        self.tables, self.buffer, self.sizes = tables, buffer, tables.sizes
        self.machines = ObservedMachines(tables, len(buffer.actions))
        self.lag, self.first = tables.timing.lag, tables.timing.first
        self.reads_first_label = self.first + self.lag == 0
        self.n_actions = len(buffer.actions)
        self.rows: dict[tuple[int, ...], int] = {}
        self.augmented_states: list[tuple[int, ...]] = []
        self.next_row: list[list[int]] = []
        self.label_read: list[list[int]] = []
        self.reward: list[list[float]] = []
        self.nondeterministic: set[tuple[int, int]] = set()  # steps that led to several rows
        self.n_known = 0  # number of steps with a known outcome
        self.starts: dict[int, int] = {}
        self.start_symbols: dict[int, tuple[int, int]] = {}
        self.initial_symbols: set[tuple[int, int]] = set()
        self.last_outcome: dict[Query, int] = {}
        self.label_of: dict[int, int] = {}
        self.last_reward: dict[tuple[int, ...], tuple[float, bool]] = {}
        self.neutral_labels = _neutral_labels(tables, buffer)
        self.queries_after: dict[Checked, set[Query]] = {}
        self.queries_after_pair: dict[Checked, set[Query]] = {}
        self.informative: set[Query] = set()
        self.terminating: set[Query] = set()
        self.terminates = False
        self.usual_reward = usual_reward
        self.least, self.most = np.inf, -np.inf
        self.labels_in_order: Codes = np.empty(0, np.int32)
        self._words: dict[int, set[tuple[int, ...]]] = {}

    @classmethod
    def of_steps(cls, tables: TransitionTables, buffer: Buffer) -> "EmpiricalModel":
        """Return the model of all steps in a buffer, which the machines explain.

        Equal steps are added once; only informative queries are noted in their contexts.
        """
        columns = buffer.columns()
        rewards, number = columns.reward_levels
        model = cls(tables, buffer, float(rewards[np.bincount(number).argmax()]))
        model.least, model.most = float(rewards[0]), float(rewards[-1])
        model.terminates = bool(columns.terminated.any())
        steps = QueriedSteps(columns, tables)
        model.machines = ObservedMachines.of_steps(tables, steps)
        states = [steps.walk(table) for table in tables.transitions]
        _add_distinct_steps(model, columns, steps, states)
        _note_contexts(model, columns, steps, states)
        times = Counter(_rows(columns.starts, columns.observations, columns.labels))
        starts = [(seen, model.first_states(label), label) for seen, label in times]
        for observation, _, label in sorted(start for start in starts if start[1] is not None):
            model.begin(observation, label, times[observation, label])
        labels = columns.labels.copy()
        labels[columns.starts] = -1
        read = np.append(labels[~np.isin(labels, list(model.neutral_labels))][1:], -1)
        model.labels_in_order = read[np.append(True, read[1:] != read[:-1])].astype(np.int32)
        return model

    def __len__(self) -> int:
        return len(self.augmented_states)

    def row(self, augmented_state: tuple[int, ...]) -> int:
        """Return the row of an augmented state, a new one at its first occurrence."""
        row = self.rows.get(augmented_state)
        if row is None:
            row = self.rows[augmented_state] = len(self.augmented_states)
            self.augmented_states.append(augmented_state)
            self.next_row.append([UNKNOWN] * self.n_actions)
            self.reward.append([0.0] * self.n_actions)
            self.label_read.append([-1] * self.n_actions)
        return row

    def begin(self, observation: int, label: int, times: int = 1) -> int:
        """Return the initial row of an episode; `UNKNOWN` if its first label is new."""
        if (states := self.first_states(label)) is None:
            return UNKNOWN
        row = self.row((observation, *states))
        self.starts[row] = self.starts.get(row, 0) + times
        self.start_symbols.setdefault(row, (observation, label))
        self.initial_symbols.add((observation, label))
        return row

    def is_new_start(self, observation: int, label: int) -> bool:
        """Return whether no episode began with this start or an equivalent one."""
        if (observation, label) in self.initial_symbols:
            return False
        states = self.first_states(label)
        is_known = states is not None and (observation, *states) in self.rows
        return not is_known or label not in {first for _, first in self.initial_symbols}

    def first_states(self, label: int) -> States | None:
        """Return the states at the start of an episode; None if its first label is new."""
        initial = [0] * len(self.sizes)
        return self.machines.next_states(initial, label if self.reads_first_label else -1)

    def first_word(self, start: int) -> tuple[int, ...]:
        """Return the labels read at a start, without neutral ones."""
        label = self.start_symbols[start][1]
        return (label,) if self.reads_first_label and label not in self.neutral_labels else ()

    def labels_read(self, episode: Episode) -> "array[int]":
        """Return the labels that machines have read in an episode, by the label timing."""
        return episode.labels[self.first : len(episode.labels) - self.lag]

    def without_neutral(self, labels: Iterable[int]) -> tuple[int, ...]:
        """Return the labels without neutral ones."""
        return tuple(label for label in labels if label not in self.neutral_labels)

    def next_word(self, word: tuple[int, ...], label: int) -> tuple[int, ...]:
        """Return a label sequence after another label, unless there is none or it is neutral."""
        return word if label < 0 or label in self.neutral_labels else (*word, label)

    def add_step(self, row: int, action: int, outcome: Outcome) -> StepEffect:
        """Add a step."""
        observation, *states = self.augmented_states[row]
        next_observation, label, label_read, reward, terminated = outcome
        query = observation, action
        varies = self.last_outcome.setdefault(query, next_observation) != next_observation
        self.last_outcome[query] = next_observation
        self.note_label(next_observation, label)
        self.least, self.most = min(self.least, reward), max(self.most, reward)
        if not self.machines.note(states, query, (next_observation, reward, terminated)):
            return StepEffect(UNKNOWN, True, contradicts=True)
        if terminated:
            self.terminates = True
            self.terminating.add(query)
        if terminated or reward != self.usual_reward or varies:
            self.informative.add(query)
        self.label_read[row][action] = label_read
        self.last_reward[states[1], label_read] = reward, terminated
        self.last_reward[states[1], label_read, action] = reward, terminated
        next_row = ENDS
        if not terminated:
            next_states = self.machines.next_states(states, label_read)
            if next_states is None:
                return StepEffect(UNKNOWN, True)
            next_row = self.row((next_observation, *next_states))
        return StepEffect(next_row, self._set_outcome(row, action, next_row, reward))

    def _set_outcome(self, row: int, action: int, next_row: int, reward: float) -> bool:
        """Set the outcome of a step, or note that it varies; return whether it was never taken."""
        before = self.next_row[row][action]
        is_new = before == UNKNOWN and (row, action) not in self.nondeterministic
        if is_new:
            self.next_row[row][action], self.reward[row][action] = next_row, reward
            self.n_known += 1
        elif before not in (UNKNOWN, next_row):
            self.nondeterministic.add((row, action))
            self.next_row[row][action] = UNKNOWN
            self.n_known -= 1
        return is_new

    def note_label(self, observation: int, label: int) -> None:
        """Note the label of an observation."""
        if self.label_of.setdefault(observation, label) != label:
            self.label_of[observation] = VARIES

    def note_query(self, context: Context, previous: Context, query: Query) -> None:
        """Note that a query was observed in a context, and the context before.

        A first label that is read counts like any other.
        """
        self.queries_after.setdefault(context, set()).add(query)
        if context[0] >= 0:
            if previous:
                self.queries_after_pair.setdefault((previous, context[0]), set()).add(query)
        elif self.reads_first_label and context[2] not in self.neutral_labels:
            same = (context[2], *(0 for _ in self.sizes))
            self.queries_after.setdefault(same, set()).add(query)

    @property
    def all_rewards_equal(self) -> bool:
        """Whether rewards distinguish no policies."""
        return self.single_reward and (self.least == 0 or not self.terminates)

    @property
    def single_reward(self) -> bool:
        """Whether every step had the same reward."""
        return self.least >= self.most

    def words(self, length: int) -> set[tuple[int, ...]]:
        """Return the words of this length read so far, without neutral labels."""
        if length not in self._words and len(self.labels_in_order) >= length:
            windows = sliding_window_view(self.labels_in_order, length)
            rows = windows[windows.min(axis=1) >= 0]
            self._words[length] = set(zip(*rows.T.tolist(), strict=True))
        return self._words.setdefault(length, set())

    def note_word(self, recent: tuple[int, ...]) -> None:
        """Note the last labels read in a row."""
        for length, words in self._words.items():
            if len(recent) >= length:
                words.add(recent[-length:])

    def locate(self, episode: Episode) -> tuple[int, Context, Context]:
        """Return the present row of an episode, its context, and the context before, if any.

        The row is `UNKNOWN` if a label was read in a state where it never was.
        """
        context: Context = (-1, *episode.start)
        previous: Context = ()
        states: States | None = (0,) * len(self.sizes)
        for position, label in enumerate(self.labels_read(episode), self.first):
            if states is not None and position > 0 and label not in self.neutral_labels:
                previous, context = context, (label, *states)
            states = states and self.machines.next_states(states, label)
        row = UNKNOWN if states is None else self.row((episode.observations[-1], *states))
        return row, context, previous

    def steps_from(self, row: int) -> list[tuple[int, int, int]]:
        """Return action, next row and label read of the known steps that do not end an episode."""
        outcomes = enumerate(zip(self.next_row[row], self.label_read[row], strict=True))
        return [(action, target, label) for action, (target, label) in outcomes if target >= 0]

    def known_steps(self, gamma: float) -> KnownSteps:
        """Return the outcomes of all steps as arrays, to plan with a discount."""
        shape = len(self), self.n_actions
        next_row = np.fromiter(chain.from_iterable(self.next_row), np.int32).reshape(shape)
        reward = np.fromiter(chain.from_iterable(self.reward), np.float64).reshape(shape)
        is_known = next_row != UNKNOWN
        return KnownSteps(np.maximum(next_row, np.int32(-1)), reward, is_known, gamma)


def _neutral_labels(tables: TransitionTables, buffer: Buffer) -> set[int]:
    changes = np.zeros(len(buffer.labels), bool)
    for table in tables.transitions:
        changes |= ((table >= 0) & (table != np.arange(len(table))[:, None])).any(axis=0)
    are_many = len(buffer.labels) > MANY_LABELS
    labels = enumerate(buffer.labels.values)
    return {code for code, label in labels if not changes[code] and (are_many or label == NO_EVENT)}


# ---- all steps at once ---------------------------------------------------------------------------


def _add_distinct_steps(
    model: EmpiricalModel, columns: Columns, steps: QueriedSteps, states: list[Codes]
) -> None:
    """Add the first of all equal steps, in the order of occurrence."""
    label = columns.labels[columns.positions + 1]
    read = columns.labels[columns.positions] if model.lag else label
    after, ends = columns.observations_after, steps.terminated
    located = np.flatnonzero(np.min(states, axis=0) >= 0)
    kinds = (column[located] for column in (steps.query, after, read, ends, *states))
    distinct = located[_numbered_rows(*kinds)[0]]
    before, actions = columns.observations_before, columns.actions
    next_states = [
        table[state[distinct], read[distinct]]
        for table, state in zip(model.tables.transitions, states, strict=True)
    ]
    for augmented, (action, reward, terminated, label_read), next_state in zip(
        _rows(distinct, before, *states),
        _rows(distinct, actions, columns.rewards, ends, read),
        _rows(slice(None), after[distinct], *next_states),
        strict=True,
    ):
        row = model.row(augmented)
        model.label_read[row][action] = label_read
        if terminated:
            model._set_outcome(row, action, ENDS, reward)
        elif min(next_state) >= 0:
            model._set_outcome(row, action, model.row(next_state), reward)
    queries = _rows(distinct, before, actions)
    model.last_outcome.update(zip(queries, after[distinct].tolist(), strict=True))
    for key in (states[1], read), (states[1], read, actions):
        model.last_reward.update(
            zip(_rows(distinct, *key), _rows(distinct, columns.rewards, ends), strict=True)
        )
    last = np.empty(steps.n_queries, np.int32)
    last[steps.query] = after
    is_informative = ends | (columns.rewards != model.usual_reward) | (last[steps.query] != after)
    model.informative.update(_rows(is_informative, before, actions))
    model.terminating.update(_rows(ends, before, actions))
    size = int(columns.labels.max()) + 1  # a label that is read late may vary over equal steps
    pairs, _ = distinct_pairs(after, label, int(after.max()) + 1, size)
    for pair in pairs.tolist():
        model.note_label(*divmod(pair, size))


def _note_contexts(
    model: EmpiricalModel, columns: Columns, steps: QueriedSteps, states: list[Codes]
) -> None:
    """Note the informative queries observed in each context, and after each two labels."""
    opens = steps.first | ~np.isin(steps.label, list(model.neutral_labels))
    opening = np.flatnonzero(opens)
    begins, before = steps.first[opening], np.maximum(opening - 1, 0)
    context_columns = [
        begins,
        np.where(begins, columns.observations_before[opening], steps.label[opening]),
        np.where(begins, columns.labels[columns.positions[opening]], 0),
        *(np.where(begins, 0, column[before]) for column in states),
    ]
    first, number = _numbered_rows(*context_columns)
    contexts: list[Context] = [
        (-1, value, label) if is_start else (value, *rest)
        for is_start, value, label, *rest in _rows(first, *context_columns)
    ]
    queries = list(_rows(slice(None), *np.divmod(columns.queries[0], model.n_actions)))
    is_informative = np.array([query in model.informative for query in queries])
    chosen = np.flatnonzero(is_informative[steps.query])
    at = (np.cumsum(opens) - 1)[chosen]
    # The context before is of the same episode, if this is not one that begins.
    triples = number[at], np.where(begins[at], -1, number[at - 1]), steps.query[chosen]
    for context, previous, query in _rows(_numbered_rows(*triples)[0], *triples):
        earlier = contexts[previous] if previous >= 0 else ()
        model.note_query(contexts[context], earlier, queries[query])


def _numbered_rows(*columns: NDArray[Any]) -> tuple[NDArray[np.int64], Codes]:
    """Return the first positions of all distinct rows, and the number of each row."""
    named = {str(number): column for number, column in enumerate(columns)}
    return _core.numbered(pack_rows(named, len(columns[0])))


def _rows(at: Any, *columns: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield some rows of columns as plain tuples."""
    return zip(*(column[at].tolist() for column in columns), strict=True)
