"""The outcome of every step taken so far, by augmented state and action, updated step by step.

An augmented state is an observation with the states of the machines that matter for acting.
Adding a step is cheap while the machines stay the same; when they change, the model is computed
again from all steps (`bulk_update`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from resolvent.exploration.buffer import Buffer, Columns, Episode
from resolvent.exploration.bulk_update import add_all_steps
from resolvent.exploration.optimistic_model import ObservedOutcomes
from resolvent.exploration.tables import OutputTable, TransitionTables
from resolvent.traces.symbols import NO_EVENT
from resolvent.traces.vocabulary import Codes

UNKNOWN: Final = -2
"""Stands for the next row where a step was never taken, or its outcome is random."""

ENDS: Final = -1
"""Stands for the next row where a step terminates the episode."""

MANY_LABELS: Final = 16
"""Number of labels above which those that change no state do not open a context."""

Context: TypeAlias = tuple[int, ...]
"""The last label with the states before it; or -1 with the first observation and label."""

Query: TypeAlias = tuple[int, int]
"""Observation and action."""


@dataclass(frozen=True, slots=True)
class StepEffect:
    """The row reached by a step, whether it is news, and the machine it contradicts."""

    next_row: int
    is_new: bool
    contradicts: str | None = None


class EmpiricalModel:
    """The outcome of every step by row and action; a row is the number of an augmented state.

    A *neutral* label changes no state and opens no context. An *informative* query has an unusual
    reward, terminates an episode, or has an outcome that varies.
    """

    def __init__(self, tables: TransitionTables, buffer: Buffer, columns: Columns) -> None:
        self.tables, self.buffer = tables, buffer
        self.names, self.sizes = tables.names, tables.sizes
        self.lag, self.first = tables.timing.lag, tables.timing.first
        self.reads_first_label = self.first + self.lag == 0
        self.transitions: list[list[list[int]]] = [table.tolist() for table in tables.transitions]
        self.n_actions = len(buffer.actions)
        self.rows: dict[tuple[int, ...], int] = {}
        self.augmented_states: list[tuple[int, ...]] = []
        self.next_row: list[list[int]] = []
        self.label_read: list[list[int]] = []
        self.reward: list[list[float]] = []
        self.nondeterministic: set[tuple[int, int]] = set()
        """The steps, as row and action, that led to several rows."""
        self.n_known = 0
        """Number of steps with a known outcome."""
        self.starts: dict[int, int] = {}
        """Number of episodes that started in each row."""
        self.start_symbols: dict[int, tuple[int, int]] = {}
        """The observation and label of the first occurrence of each start."""
        self.initial_symbols: set[tuple[int, int]] = set()
        self.outputs = OutputTable(self.sizes, self.n_actions)
        self.outcomes = ObservedOutcomes(self.sizes[0], self.n_actions)
        self.last_outcome: dict[Query, int] = {}
        """The last observation after each query."""
        self.label_of: dict[int, int] = {}
        """The label of each observation; -2 if it varies."""
        self.last_reward: dict[tuple[int, ...], tuple[float, bool]] = {}
        """The last reward by reward state and label, with and without the action, and whether the
        step terminated the episode."""
        self.neutral_labels = self._neutral_labels()
        self.queries_after: dict[Context, set[Query]] = {}
        self.queries_after_pair: dict[tuple[Context, int], set[Query]] = {}
        self.informative: set[Query] = set()
        self.terminating: set[Query] = set()
        self.terminates = False
        self.usual_reward: float | None = None
        self.least, self.most = np.inf, -np.inf
        self.labels_in_order: Codes = np.empty(0, np.int32)
        """The labels of all episodes without neutral ones and repetitions, and -1 after each."""
        self._words: dict[int, set[tuple[int, ...]]] = {}
        if columns.steps:
            add_all_steps(self, columns)

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

    def begin(self, observation: int, label: int) -> int:
        """Return the initial row of an episode; `UNKNOWN` if its first label is new."""
        states = self._first_states(label)
        if states is None:
            return UNKNOWN
        row = self.row((observation, *states))
        self.starts[row] = self.starts.get(row, 0) + 1
        self.start_symbols.setdefault(row, (observation, label))
        self.initial_symbols.add((observation, label))
        return row

    def is_new_start(self, observation: int, label: int) -> bool:
        """Return whether no episode began with this start or an equivalent one."""
        if (observation, label) in self.initial_symbols:
            return False
        states = self._first_states(label)
        is_known = states is not None and (observation, *states) in self.rows
        return not is_known or label not in {first for _, first in self.initial_symbols}

    def _first_states(self, label: int) -> list[int] | None:
        return self.next_states([0] * len(self.sizes), label if self.reads_first_label else -1)

    def next_states(self, states: Sequence[int], label: int) -> list[int] | None:
        """Return the states reached by reading a label; None if it was never read there."""
        if label < 0:
            return list(states)
        targets = []
        for transitions, state in zip(self.transitions, states, strict=True):
            target = transitions[state][label] if label < len(transitions[state]) else -1
            if target < 0:
                return None
            targets.append(target)
        return targets

    def add_step(
        self,
        row: int,
        action: int,
        reward: float,
        observation_after: int,
        label: int,
        label_before: int,
        terminated: bool,
    ) -> StepEffect:
        """Add a step; `label_before` is the label of the observation before it."""
        observation, *states = self.augmented_states[row]
        query = observation, action
        varies = self.last_outcome.setdefault(query, observation_after) != observation_after
        self.last_outcome[query] = observation_after
        self.outcomes.note(states[0], observation, action, observation_after)
        if self.label_of.setdefault(observation_after, label) != label:
            self.label_of[observation_after] = -2
        self.least, self.most = min(self.least, reward), max(self.most, reward)
        for machine, name in enumerate(self.names):
            output = _output(name, observation_after, reward, terminated)
            if self.outputs.note(machine, states, observation, action, output) != output:
                return StepEffect(UNKNOWN, True, contradicts=name)
        self.terminates = self.terminates or terminated
        if terminated:
            self.terminating.add(query)
        if self.usual_reward is None:
            self.usual_reward = reward
        if terminated or reward != self.usual_reward or varies:
            self.informative.add(query)
        before = self.next_row[row][action]
        read = label_before if self.lag else label
        self.label_read[row][action] = read
        self.last_reward[states[1], read] = reward, terminated
        self.last_reward[states[1], read, action] = reward, terminated
        next_row = ENDS
        if not terminated:
            targets = self.next_states(states, read)
            if targets is None:
                return StepEffect(UNKNOWN, True)
            next_row = self.row((observation_after, *targets))
        is_new = before == UNKNOWN and (row, action) not in self.nondeterministic
        if before not in (UNKNOWN, next_row):
            self.nondeterministic.add((row, action))
            self.next_row[row][action] = UNKNOWN
            self.n_known -= 1
        elif is_new:
            self.next_row[row][action] = next_row
            self.reward[row][action] = reward
            self.n_known += 1
        return StepEffect(next_row, is_new)

    def _neutral_labels(self) -> set[int]:
        neutral = set()
        are_many = len(self.buffer.labels) > MANY_LABELS
        for code, label in enumerate(self.buffer.labels.values):
            changes_nothing = all(
                row[code] in (state, -1)
                for transitions in self.transitions
                for state, row in enumerate(transitions)
            )
            if changes_nothing and (are_many or label == NO_EVENT):
                neutral.add(code)
        return neutral

    def note_query(self, context: Context, previous: Context, query: Query) -> None:
        """Note that a query was asked in a context, and the context before.

        A first label that is read counts like any other.
        """
        self.queries_after.setdefault(context, set()).add(query)
        if context[0] >= 0:
            if previous:
                self.queries_after_pair.setdefault((previous, context[0]), set()).add(query)
        elif self.reads_first_label and context[2] not in self.neutral_labels:
            same = (context[2], *(0 for _ in self.sizes))
            self.queries_after.setdefault(same, set()).add(query)

    def query_number(self, observation: int, action: int) -> int:
        """Return the number of a query."""
        return observation * self.n_actions + action

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
        words = self._words.get(length)
        if words is None:
            words = self._words[length] = set()
            if len(self.labels_in_order) >= length:
                windows = sliding_window_view(self.labels_in_order, length)
                rows = windows[windows.min(axis=1) >= 0]
                words.update(zip(*rows.T.tolist(), strict=True))
        return words

    def note_word(self, recent: tuple[int, ...]) -> None:
        """Note the last labels read in a row."""
        for length, words in self._words.items():
            if len(recent) >= length:
                words.add(recent[-length:])

    def locate(self, episode: Episode) -> tuple[int, Context, Context]:
        """Return the present row of an episode, its context, and the context before, if any.

        The row is `UNKNOWN` if a label was read in a state where it never was.
        """
        labels = episode.labels
        context: Context = (-1, episode.observations[0], labels[0])
        previous: Context = ()
        states: Sequence[int] = [0] * len(self.sizes)
        for position in range(self.first, len(labels) - self.lag):
            if position > 0 and labels[position] not in self.neutral_labels:
                previous, context = context, (labels[position], *states)
            targets = self.next_states(states, labels[position])
            if targets is None:
                return UNKNOWN, context, previous
            states = targets
        return self.row((episode.observations[-1], *states)), context, previous

    def arrays(self) -> tuple[Codes, NDArray[np.float64], NDArray[np.bool_]]:
        """Return next row, reward, and whether the outcome is known, by row and action."""
        shape = len(self), self.n_actions
        next_row = np.fromiter(chain.from_iterable(self.next_row), np.int32).reshape(shape)
        reward = np.fromiter(chain.from_iterable(self.reward), np.float64).reshape(shape)
        is_known = next_row != UNKNOWN
        return np.where(is_known, next_row, np.int32(-1)), reward, is_known


def _output(name: str, observation: int, reward: float, terminated: bool) -> float:
    if name == "transition":
        return observation
    return reward if name == "reward" else float(terminated)
