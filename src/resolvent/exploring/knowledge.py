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

from resolvent.exploring.log import Columns, Log
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
the observation that an episode began with."""


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
        self.reward: list[list[float]] = []
        self.unsettled: set[tuple[int, int]] = set()
        self.starts: dict[int, int] = {}
        self.answers: list[dict[tuple[int, ...], float]] = [{} for _ in self.kinds]
        self.guess: dict[tuple[int, int], int] = {}
        self.label_at: dict[int, int] = {}
        self.known = 0
        self.plain = self._plain_labels()
        self.contexts: dict[Context, set[tuple[int, int]]] = {}
        self.notable: set[tuple[int, int]] = set()
        self._usual: float | None = None
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
        return number

    def begin(self, seen: int, label: int) -> int:
        """Return the situation in which an episode begins; −2 if its first label is new."""
        states = self.led([0] * len(self.sizes), label if self.first + self.lag == 0 else -1)
        if states is None:
            return UNKNOWN
        row = self.row((seen, *states))
        self.starts[row] = self.starts.get(row, 0) + 1
        return row

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
        if self._usual is None:
            self._usual = reward
        if ended or reward != self._usual or varies:
            self.notable.add((observation, action))
        was = self.following[row][action]
        if ended:
            following = ENDS
        else:
            led = self.led(states, before if self.lag else label)
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

    def first_context(self, seen: int, label: int) -> Context:
        """Return the context in which an episode begins."""
        return (-1, seen, label)

    def ask(self, context: Context, row: int, action: int) -> None:
        """Note that a question was asked in a context."""
        self.contexts.setdefault(context, set()).add((self.situations[row][0], action))

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
        self.starts.clear()
        begins = columns.offsets[:-1]
        rows = np.stack([seen[begins], *(one[begins] for one in states)])
        kinds, counts = np.unique(rows, axis=1, return_counts=True)
        for kind, count in zip(kinds.T.tolist(), counts.tolist(), strict=True):
            if min(kind) >= 0:
                self.starts[self.row(tuple(kind))] = count
        self.least = float(columns.rewards.min())
        self.most = float(columns.rewards.max())

    def _note_contexts(
        self, columns: Columns, states: list[Codes], at: NDArray[np.int64]
    ) -> None:
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
        before = np.maximum(since - 1, 0)
        rows = np.stack(
            [
                begins[chosen],
                np.where(begins, columns.seen[at][since], read[since])[chosen],
                np.where(begins, columns.labels[at][since], 0)[chosen],
                *(np.where(begins, 0, one[before])[chosen] for one in states),
                seen[chosen],
                columns.actions[chosen],
            ]
        )
        for is_first, value, label, *rest in np.unique(rows, axis=1).T.tolist():
            *own, observation, action = rest
            context = (-1, value, label) if is_first else (value, *own)
            self.contexts.setdefault(context, set()).add((observation, action))


def _answer(kind: str, seen: int, reward: float, ended: bool) -> float:
    if kind == "transition":
        return seen
    return reward if kind == "reward" else float(ended)

