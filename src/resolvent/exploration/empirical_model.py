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

from resolvent.exploration.answers import Answers
from resolvent.exploration.buffer import Columns, Episode, Log
from resolvent.exploration.bulk_update import recall
from resolvent.exploration.optimistic_model import Outcomes
from resolvent.exploration.tables import Tables
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

Question: TypeAlias = tuple[int, int]
"""Observation and action."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of a step: the situation that follows, if known, and what was not foreseen.

    `surprise` names the machine that is wrong; `unread` says that a label was read in a state
    in which it never was before, so that it is not known what follows.
    """

    following: int
    news: bool
    surprise: str | None = None
    unread: bool = False


class Knowledge:
    """What is known of every step in every situation that was met."""

    def __init__(self, tables: Tables, log: Log, columns: Columns) -> None:
        self.believed, self.log = tables, log
        self.kinds, self.sizes = tables.kinds, tables.sizes
        self.lag, self.first = tables.timing.lag, tables.timing.first
        self.moves: list[list[list[int]]] = [one.tolist() for one in tables.moves]
        self.rows: dict[tuple[int, ...], int] = {}
        self.situations: list[tuple[int, ...]] = []
        self.following: list[list[int]] = []
        self.read: list[list[int]] = []
        self.reward: list[list[float]] = []
        self.unsettled: set[tuple[int, int]] = set()
        self.starts: dict[int, int] = {}
        self.began: dict[int, tuple[int, int]] = {}
        self.beginnings: set[tuple[int, int]] = set()
        self.answers = Answers(self.sizes, len(log.actions))
        self.guess: dict[tuple[int, int], int] = {}
        self.label_at: dict[int, int] = {}
        self.usually: dict[tuple[int, ...], tuple[float, bool]] = {}
        """What reading a label pays in a state of the Reward Machine, and whether it ends."""
        self.outcomes = Outcomes(self.sizes[0], len(log.actions))
        self.known = 0
        self.plain = self._plain_labels()
        self.contexts: dict[Context, set[Question]] = {}
        self.pairs: dict[tuple[Context, int], set[Question]] = {}
        self.notable: set[tuple[int, int]] = set()
        self.ending: set[Question] = set()
        self.ends = False
        self.usual: float | None = None
        self.labels_read: Codes = np.empty(0, np.int32)
        """The labels of all episodes but for plain ones, each once in a row, and −1 after each."""
        self._words: dict[int, set[tuple[int, ...]]] = {}
        self.least, self.most = np.inf, -np.inf
        if columns.steps:
            recall(self, columns)

    def __len__(self) -> int:
        return len(self.situations)

    def row(self, situation: tuple[int, ...]) -> int:
        """Return the number of a situation, a new one if it was never met."""
        number = self.rows.get(situation)
        if number is None:
            number = self.rows[situation] = len(self.situations)
            self.situations.append(situation)
            self.following.append([UNKNOWN] * len(self.log.actions))
            self.reward.append([0.0] * len(self.log.actions))
            self.read.append([-1] * len(self.log.actions))
        return number

    def begin(self, seen: int, label: int) -> int:
        """Return the situation in which an episode begins; −2 if its first label is new."""
        states = self.led([0] * len(self.sizes), label if self.first + self.lag == 0 else -1)
        if states is None:
            return UNKNOWN
        row = self.row((seen, *states))
        self.starts[row] = self.starts.get(row, 0) + 1
        self.began.setdefault(row, (seen, label))
        self.beginnings.add((seen, label))
        return row

    def is_new_start(self, seen: int, label: int) -> bool:
        """Whether episodes that begin like this never came up, nor any that come to the same."""
        if (seen, label) in self.beginnings:
            return False
        states = self.led([0] * len(self.sizes), label if self.first + self.lag == 0 else -1)
        known = states is not None and (seen, *states) in self.rows
        return not known or label not in {one for _, one in self.beginnings}

    def led(self, states: list[int] | tuple[int, ...], label: int) -> list[int] | None:
        """Return the states that a label leads to; None where it was never read there."""
        if label < 0:
            return list(states)
        led = []
        for moves, state in zip(self.moves, states, strict=True):
            target = moves[state][label] if label < len(moves[state]) else -1
            if target < 0:
                return None
            led.append(target)
        return led

    def take(
        self, row: int, action: int, reward: float, seen: int, label: int, before: int, ended: bool
    ) -> Taken:
        """Take a step; `before` is the label of what was seen before it."""
        observation, *states = self.situations[row]
        varies = self.guess.setdefault((observation, action), seen) != seen
        self.guess[observation, action] = seen
        self.outcomes.note(states[0], observation, action, seen)
        self._note_label(seen, label)
        self.least, self.most = min(self.least, reward), max(self.most, reward)
        for place, kind in enumerate(self.kinds):
            answer = _answer(kind, seen, reward, ended)
            if self.answers.note(place, states, observation, action, answer) != answer:
                return Taken(UNKNOWN, True, surprise=kind)
        self.ends = self.ends or ended
        if ended:
            self.ending.add((observation, action))
        if self.usual is None:
            self.usual = reward
        if ended or reward != self.usual or varies:
            self.notable.add((observation, action))
        was = self.following[row][action]
        read = before if self.lag else label
        self.read[row][action] = read
        self.usually[states[1], read] = self.usually[states[1], read, action] = reward, ended
        if ended:
            following = ENDS
        else:
            led = self.led(states, read)
            if led is None:
                return Taken(UNKNOWN, True, unread=True)
            following = self.row((seen, *led))
        news = was == UNKNOWN and (row, action) not in self.unsettled
        if was not in (UNKNOWN, following):
            self.unsettled.add((row, action))
            self.following[row][action] = UNKNOWN
            self.known -= 1
        elif news:
            self.following[row][action] = following
            self.reward[row][action] = reward
            self.known += 1
        return Taken(following, news)

    def _note_label(self, seen: int, label: int) -> None:
        if self.label_at.setdefault(seen, label) != label:
            self.label_at[seen] = -2

    def _plain_labels(self) -> set[int]:
        """Return the labels that open no context, since they change nothing anywhere."""
        plain = set()
        many = len(self.log.labels) > MANY_LABELS
        for code, label in enumerate(self.log.labels.values):
            loops = all(
                row[code] in (state, -1) for moves in self.moves for state, row in enumerate(moves)
            )
            if loops and (many or label == NO_EVENT):
                plain.add(code)
        return plain

    def context(self, before: Context, states: Iterable[int], label: int) -> Context:
        """Return the context after a label was read in these states."""
        return before if label < 0 or label in self.plain else (label, *states)

    def ask(self, context: Context, before: Context, row: int, action: int) -> None:
        """Note that a question was asked in a context that came after another."""
        self.note_question(context, before, (self.situations[row][0], action))

    def note_question(self, context: Context, before: Context, question: Question) -> None:
        """Note a question by what was seen; a first label that counts is read as any other is."""
        self.contexts.setdefault(context, set()).add(question)
        if context[0] >= 0:
            if before:
                self.pairs.setdefault((before, context[0]), set()).add(question)
        elif self.first + self.lag == 0 and context[2] not in self.plain:
            self.contexts.setdefault((context[2], *(0 for _ in self.sizes)), set()).add(question)

    @property
    def vacuous(self) -> bool:
        """Whether nothing was ever paid that tells one way to act from another."""
        return self.uniform and (self.least == 0 or not self.ends)

    @property
    def uniform(self) -> bool:
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

    def read_word(self, recent: tuple[int, ...]) -> None:
        """Note the last labels that were read in a row."""
        for length, words in self._words.items():
            if len(recent) >= length:
                words.add(recent[-length:])

    def located(self, episode: Episode) -> tuple[int, Context, Context]:
        """Return the situation that an episode has come to, −2 where it is not known.

        With it come the context in which it is, and the one before that, if any.
        """
        labels = episode.labels
        context: Context = (-1, episode.seen[0], labels[0])
        before: Context = ()
        states = [0] * len(self.sizes)
        for place in range(self.first, len(labels) - self.lag):
            if place > 0 and labels[place] not in self.plain:
                before, context = context, (labels[place], *states)
            led = self.led(states, labels[place])
            if led is None:
                return UNKNOWN, context, before
            states = led
        return self.row((episode.seen[-1], *states)), context, before

    def tables(self) -> tuple[Codes, NDArray[np.float64], NDArray[np.bool_]]:
        """Return what follows, what is paid and which steps are known, situation by action."""
        shape = len(self), len(self.log.actions)
        following = np.fromiter(chain.from_iterable(self.following), np.int32).reshape(shape)
        reward = np.fromiter(chain.from_iterable(self.reward), np.float64).reshape(shape)
        known = following != UNKNOWN
        return np.where(known, following, np.int32(-1)), reward, known


def _answer(kind: str, seen: int, reward: float, ended: bool) -> float:
    if kind == "transition":
        return seen
    return reward if kind == "reward" else float(ended)
