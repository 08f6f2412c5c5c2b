"""Machines + all that was seen → what is known of every step, kept up to date step by step.

A situation is an observation with the states of the machines that matter for acting. A
step from it is known once it was taken there. Taking one more costs next to nothing as
long as the machines hold; only when they change is all of it worked out again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from resolvent.exploration.answers import OutputTable
from resolvent.exploration.buffer import Columns, Episode, Buffer
from resolvent.exploration.bulk_update import recall
from resolvent.exploration.optimistic_model import ObservedOutcomes
from resolvent.exploration.tables import TransitionTables
from resolvent.traces.symbols import NO_EVENT
from resolvent.traces.vocabulary import Codes

UNKNOWN: Final = -2
ENDS: Final = -1
"""What stands in place of the situation that follows."""

MANY_LABELS: Final = 16
"""With more labels than these, only those that move some machine open a context."""

Context: TypeAlias = tuple[int, ...]
"""How the present states came about: the label read last with the states before it, or −1 with
the observation and the label that an episode began with."""

Query: TypeAlias = tuple[int, int]
"""Observation and action."""


@dataclass(frozen=True, slots=True)
class StepEffect:
    """What came of a step: the situation that follows, if known, and what was not foreseen.

    `surprise` names the machine that is wrong; `unread` says that a label was read in a state
    in which it never was before, so that it is not known what follows.
    """

    following: int
    news: bool
    surprise: str | None = None
    unread: bool = False


class EmpiricalModel:
    """What is known of every step in every situation that was met."""

    def __init__(self, tables: TransitionTables, log: Buffer, columns: Columns) -> None:
        self.believed, self.log = tables, log
        self.kinds, self.sizes = tables.kinds, tables.sizes
        self.lag, self.first = tables.timing.lag, tables.timing.first
        self.transitions: list[list[list[int]]] = [one.tolist() for one in tables.moves]
        self.rows: dict[tuple[int, ...], int] = {}
        self.augmented_states: list[tuple[int, ...]] = []
        self.next_row: list[list[int]] = []
        self.label_read: list[list[int]] = []
        self.reward: list[list[float]] = []
        self.nondeterministic: set[tuple[int, int]] = set()
        self.starts: dict[int, int] = {}
        self.start_symbols: dict[int, tuple[int, int]] = {}
        self.initial_symbols: set[tuple[int, int]] = set()
        self.outputs = OutputTable(self.sizes, len(log.actions))
        self.last_outcome: dict[tuple[int, int], int] = {}
        self.label_of: dict[int, int] = {}
        self.last_reward: dict[tuple[int, ...], tuple[float, bool]] = {}
        """What reading a label pays in a state of the Reward Machine, and whether it ends."""
        self.outcomes = ObservedOutcomes(self.sizes[0], len(log.actions))
        self.n_known = 0
        self.neutral_labels = self._neutral_labels()
        self.queries_after: dict[Context, set[Query]] = {}
        self.queries_after_pair: dict[tuple[Context, int], set[Query]] = {}
        self.informative: set[tuple[int, int]] = set()
        self.terminating: set[Query] = set()
        self.terminates = False
        self.usual_reward: float | None = None
        self.labels_read: Codes = np.empty(0, np.int32)
        """The labels of all episodes but for plain ones, each once in a row, and −1 after each."""
        self._words: dict[int, set[tuple[int, ...]]] = {}
        self.least, self.most = np.inf, -np.inf
        if columns.steps:
            recall(self, columns)

    def __len__(self) -> int:
        return len(self.augmented_states)

    def row(self, situation: tuple[int, ...]) -> int:
        """Return the number of a situation, a new one if it was never met."""
        number = self.rows.get(situation)
        if number is None:
            number = self.rows[situation] = len(self.augmented_states)
            self.augmented_states.append(situation)
            self.next_row.append([UNKNOWN] * len(self.log.actions))
            self.reward.append([0.0] * len(self.log.actions))
            self.label_read.append([-1] * len(self.log.actions))
        return number

    def begin(self, seen: int, label: int) -> int:
        """Return the situation in which an episode begins; −2 if its first label is new."""
        states = self.next_states(
            [0] * len(self.sizes), label if self.first + self.lag == 0 else -1
        )
        if states is None:
            return UNKNOWN
        row = self.row((seen, *states))
        self.starts[row] = self.starts.get(row, 0) + 1
        self.start_symbols.setdefault(row, (seen, label))
        self.initial_symbols.add((seen, label))
        return row

    def is_new_start(self, seen: int, label: int) -> bool:
        """Whether episodes that begin like this never came up, nor any that come to the same."""
        if (seen, label) in self.initial_symbols:
            return False
        states = self.next_states(
            [0] * len(self.sizes), label if self.first + self.lag == 0 else -1
        )
        known = states is not None and (seen, *states) in self.rows
        return not known or label not in {one for _, one in self.initial_symbols}

    def next_states(self, states: list[int] | tuple[int, ...], label: int) -> list[int] | None:
        """Return the states that a label leads to; None where it was never read there."""
        if label < 0:
            return list(states)
        led = []
        for moves, state in zip(self.transitions, states, strict=True):
            target = moves[state][label] if label < len(moves[state]) else -1
            if target < 0:
                return None
            led.append(target)
        return led

    def add_step(
        self, row: int, action: int, reward: float, seen: int, label: int, before: int, ended: bool
    ) -> StepEffect:
        """Take a step; `before` is the label of what was seen before it."""
        observation, *states = self.augmented_states[row]
        varies = self.last_outcome.setdefault((observation, action), seen) != seen
        self.last_outcome[observation, action] = seen
        self.outcomes.note(states[0], observation, action, seen)
        self._note_label(seen, label)
        self.least, self.most = min(self.least, reward), max(self.most, reward)
        for place, kind in enumerate(self.kinds):
            answer = _answer(kind, seen, reward, ended)
            if self.outputs.note(place, states, observation, action, answer) != answer:
                return StepEffect(UNKNOWN, True, surprise=kind)
        self.terminates = self.terminates or ended
        if ended:
            self.terminating.add((observation, action))
        if self.usual_reward is None:
            self.usual_reward = reward
        if ended or reward != self.usual_reward or varies:
            self.informative.add((observation, action))
        was = self.next_row[row][action]
        read = before if self.lag else label
        self.label_read[row][action] = read
        self.last_reward[states[1], read] = self.last_reward[states[1], read, action] = (
            reward,
            ended,
        )
        if ended:
            following = ENDS
        else:
            led = self.next_states(states, read)
            if led is None:
                return StepEffect(UNKNOWN, True, unread=True)
            following = self.row((seen, *led))
        news = was == UNKNOWN and (row, action) not in self.nondeterministic
        if was not in (UNKNOWN, following):
            self.nondeterministic.add((row, action))
            self.next_row[row][action] = UNKNOWN
            self.n_known -= 1
        elif news:
            self.next_row[row][action] = following
            self.reward[row][action] = reward
            self.n_known += 1
        return StepEffect(following, news)

    def _note_label(self, seen: int, label: int) -> None:
        if self.label_of.setdefault(seen, label) != label:
            self.label_of[seen] = -2

    def _neutral_labels(self) -> set[int]:
        """Return the labels that open no context, since they change nothing anywhere."""
        plain = set()
        many = len(self.log.labels) > MANY_LABELS
        for code, label in enumerate(self.log.labels.values):
            loops = all(
                row[code] in (state, -1)
                for moves in self.transitions
                for state, row in enumerate(moves)
            )
            if loops and (many or label == NO_EVENT):
                plain.add(code)
        return plain

    def context(self, before: Context, states: Iterable[int], label: int) -> Context:
        """Return the context after a label was read in these states."""
        return before if label < 0 or label in self.neutral_labels else (label, *states)

    def note_query_at(self, context: Context, before: Context, row: int, action: int) -> None:
        """Note that a question was asked in a context that came after another."""
        self.note_query(context, before, (self.augmented_states[row][0], action))

    def note_query(self, context: Context, before: Context, question: Query) -> None:
        """Note a question by what was seen; a first label that counts is read as any other is."""
        self.queries_after.setdefault(context, set()).add(question)
        if context[0] >= 0:
            if before:
                self.queries_after_pair.setdefault((before, context[0]), set()).add(question)
        elif self.first + self.lag == 0 and context[2] not in self.neutral_labels:
            self.queries_after.setdefault((context[2], *(0 for _ in self.sizes)), set()).add(
                question
            )

    @property
    def all_rewards_equal(self) -> bool:
        """Whether nothing was ever paid that tells one way to act from another."""
        return self.single_reward and (self.least == 0 or not self.terminates)

    @property
    def single_reward(self) -> bool:
        """Whether the same was paid at every step."""
        return self.least >= self.most

    def words(self, length: int) -> set[tuple[int, ...]]:
        """Return the words of so many labels that were read in a row; plain ones do not count."""
        found = self._words.get(length)
        if found is None:
            found = self._words[length] = set()
            if len(self.labels_read) >= length:
                windows = sliding_window_view(self.labels_read, length)
                words = windows[windows.min(axis=1) >= 0]
                found.update(zip(*words.T.tolist(), strict=True))
        return found

    def note_word(self, recent: tuple[int, ...]) -> None:
        """Note the last labels that were read in a row."""
        for length, words in self._words.items():
            if len(recent) >= length:
                words.add(recent[-length:])

    def locate(self, episode: Episode) -> tuple[int, Context, Context]:
        """Return the situation that an episode has come to, −2 where it is not known.

        With it come the context in which it is, and the one before that, if any.
        """
        labels = episode.labels
        context: Context = (-1, episode.observations[0], labels[0])
        before: Context = ()
        states = [0] * len(self.sizes)
        for place in range(self.first, len(labels) - self.lag):
            if place > 0 and labels[place] not in self.neutral_labels:
                before, context = context, (labels[place], *states)
            led = self.next_states(states, labels[place])
            if led is None:
                return UNKNOWN, context, before
            states = led
        return self.row((episode.observations[-1], *states)), context, before

    def tables(self) -> tuple[Codes, NDArray[np.float64], NDArray[np.bool_]]:
        """Return what follows, what is paid and which steps are known, situation by action."""
        shape = len(self), len(self.log.actions)
        following = np.fromiter(chain.from_iterable(self.next_row), np.int32).reshape(shape)
        reward = np.fromiter(chain.from_iterable(self.reward), np.float64).reshape(shape)
        known = following != UNKNOWN
        return np.where(known, following, np.int32(-1)), reward, known


def _answer(kind: str, seen: int, reward: float, ended: bool) -> float:
    if kind == "transition":
        return seen
    return reward if kind == "reward" else float(ended)
