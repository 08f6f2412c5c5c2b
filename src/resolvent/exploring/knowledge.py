"""Machines + all that was seen → what is known of every step, kept up to date step by step.

A situation is an observation with the states of the machines that matter for acting. A
step from it is known once it was taken there. Taking one more costs next to nothing as
long as the machines hold; only when they change is all of it worked out again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent.exploring.log import Columns, Episode, Log
from resolvent.exploring.tables import Steps, Tables
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
        self.answers: list[dict[tuple[int, ...], float]] = [{} for _ in self.kinds]
        self.guess: dict[tuple[int, int], int] = {}
        self.label_at: dict[int, int] = {}
        self.known = 0
        self.plain = self._plain_labels()
        self.contexts: dict[Context, set[Question]] = {}
        self.pairs: dict[tuple[Context, int], set[Question]] = {}
        self.notable: set[tuple[int, int]] = set()
        self.ends = False
        self._usual: float | None = None
        self._words: dict[int, set[tuple[int, ...]]] = {}
        self._read: list[list[int]] = []
        self.least, self.most = np.inf, -np.inf
        self.surprised: str | None = None
        self._take_all(columns)

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
        self._note_label(seen, label)
        self.least, self.most = min(self.least, reward), max(self.most, reward)
        for place, (kind, answers) in enumerate(zip(self.kinds, self.answers, strict=True)):
            key = self._question(place, observation, states, action)
            answer = _answer(kind, seen, reward, ended)
            if answers.setdefault(key, answer) != answer:
                return Taken(UNKNOWN, True, surprise=kind)
        self.ends = self.ends or ended
        if self._usual is None:
            self._usual = reward
        if ended or reward != self._usual or varies:
            self.notable.add((observation, action))
        was = self.following[row][action]
        read = before if self.lag else label
        self.read[row][action] = read
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

    def _question(
        self, place: int, observation: int, states: list[int], action: int
    ) -> tuple[int, ...]:
        if place == 0:
            return (states[0], observation, action)
        return (states[place], states[0], observation, action)

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
        question = self.situations[row][0], action
        self.contexts.setdefault(context, set()).add(question)
        if context[0] >= 0 and before:
            self.pairs.setdefault((before, context[0]), set()).add(question)

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
            for episode in self._read:
                found.update(
                    tuple(episode[first : first + length])
                    for first in range(len(episode) - length + 1)
                )
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
        following = np.array(self.following, np.int32)
        known = following != UNKNOWN
        return np.where(known, following, -1).astype(np.int32), np.array(self.reward), known

    def _take_all(self, columns: Columns) -> None:
        """Take in all steps at once: each kind of step once, in the order of the first."""
        if not columns.steps:
            return
        paid, times = np.unique(columns.rewards, return_counts=True)
        self._usual = float(paid[times.argmax()])
        self.least, self.most = float(paid[0]), float(paid[-1])
        steps = Steps(columns, self.believed.timing, self.kinds)
        states = [steps.walk(one) for one in self.believed.moves]
        at = columns.at_step()
        seen, after = columns.seen[at].astype(np.int64), columns.seen[at + 1]
        last = np.zeros(columns.steps, bool)
        last[columns.offsets[1:] - 1] = True
        ended = np.zeros(columns.steps, bool)
        ended[columns.offsets[1:] - 1] = columns.ended
        lost = np.min(states, axis=0) < 0
        key = seen
        for size, state in zip(self.sizes, states, strict=True):
            key = key * size + state
        key = (key * len(self.log.actions) + columns.actions) * 2 + ended
        # Steps that show the same count once: of each the first, and of labels that differ all.
        label = columns.labels[at + 1]
        whole = np.stack([key, after, label, np.unique(columns.rewards, return_inverse=True)[1]])
        whole = whole[:, ~lost]
        places = np.flatnonzero(~lost)
        _, first = np.unique(whole, axis=1, return_index=True)
        for step in places[np.sort(first)].tolist():
            situation = (int(seen[step]), *(int(one[step]) for one in states))
            taken = self.take(
                self.row(situation),
                int(columns.actions[step]),
                float(columns.rewards[step]),
                int(after[step]),
                int(label[step]),
                int(columns.labels[at[step]]),
                bool(ended[step]),
            )
            self.surprised = self.surprised or taken.surprise
        self._note_contexts(columns, states, at)
        self._note_words(columns)
        self.starts.clear()
        begins = columns.offsets[:-1]
        rows = np.stack(
            [seen[begins], *(one[begins] for one in states), columns.labels[at[begins]]]
        )
        kinds, counts = np.unique(rows, axis=1, return_counts=True)
        for (*kind, label), count in zip(kinds.T.tolist(), counts.tolist(), strict=True):
            if min(kind) >= 0:
                row = self.row(tuple(kind))
                self.starts[row] = self.starts.get(row, 0) + count
                self.began.setdefault(row, (kind[0], label))
                self.beginnings.add((kind[0], label))

    def _note_words(self, columns: Columns) -> None:
        """Keep the labels of each episode but for plain ones, and each once in a row."""
        first = columns.offsets[:-1] + np.arange(len(columns.offsets) - 1)
        plain = np.isin(columns.labels, list(self.plain))
        plain[first] = True
        for start, stop in zip(first, np.append(first[1:], len(columns.labels)), strict=True):
            labels = columns.labels[start:stop][~plain[start:stop]]
            if len(labels):
                once = np.append(True, labels[1:] != labels[:-1])
                self._read.append(labels[once].tolist())

    def _note_contexts(self, columns: Columns, states: list[Codes], at: NDArray[np.int64]) -> None:
        """Note which notable questions were asked in which context, of all steps at once."""
        steps, first = columns.steps, columns.offsets[:-1]
        read = columns.labels[at].astype(np.int64)  # the label read before each step
        if self.lag:
            read[1:] = read[:-1].copy()
        opens = ~np.isin(read, list(self.plain))
        opens[first] = True
        since = np.maximum.accumulate(np.where(opens, np.arange(steps), 0))
        begins = np.isin(since, first)
        notable = np.zeros((len(self.log.observations), len(self.log.actions)), bool)
        for observation, action in self.notable:
            notable[observation, action] = True
        seen = columns.seen[at]
        chosen = np.flatnonzero(notable[seen, columns.actions])
        opened = np.flatnonzero(opens)
        place = np.searchsorted(opened, since)
        earlier = opened[np.maximum(place - 1, 0)]  # the opening before, unless it is the first
        rows = np.stack(
            [
                *self._context_columns(columns, states, read, since, at, chosen, begins),
                *self._context_columns(
                    columns, states, read, earlier, at, chosen, np.isin(earlier, first)
                ),
                seen[chosen],
                columns.actions[chosen],
            ]
        )
        width = 3 + len(states)
        for row in np.unique(rows, axis=1).T.tolist():
            context, question = _context(row[:width]), (row[-2], row[-1])
            self.contexts.setdefault(context, set()).add(question)
            if context[0] >= 0:
                before = _context(row[width : 2 * width])
                self.pairs.setdefault((before, context[0]), set()).add(question)

    def _context_columns(
        self,
        columns: Columns,
        states: list[Codes],
        read: NDArray[np.int64],
        since: NDArray[np.int64],
        at: NDArray[np.int64],
        chosen: NDArray[np.int64],
        begins: NDArray[np.bool_],
    ) -> list[NDArray[np.int64]]:
        """Return the contexts that openings make, as columns, for the chosen steps."""
        since, begins = since[chosen], begins[chosen]
        before = np.maximum(since - 1, 0)
        return [
            begins,
            np.where(begins, columns.seen[at][since], read[since]),
            np.where(begins, columns.labels[at][since], 0),
            *(np.where(begins, 0, one[before]) for one in states),
        ]


def _context(row: list[int]) -> Context:
    begins, value, label, *states = row
    return (-1, value, label) if begins else (value, *states)


def _answer(kind: str, seen: int, reward: float, ended: bool) -> float:
    if kind == "transition":
        return seen
    return reward if kind == "reward" else float(ended)
