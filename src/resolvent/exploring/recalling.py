"""All that was seen, taken in at once: what a `Knowledge` would hold had it seen step by step.

The moves that are believed in explain every step, so that nothing has to be compared; each
kind of step is looked at once, however often it was taken.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from resolvent.exploring.log import Columns
from resolvent.exploring.tables import Flags, Steps
from resolvent.traces.vocabulary import Codes

if TYPE_CHECKING:
    from resolvent.exploring.knowledge import Context, Knowledge

_ENDS, _UNKNOWN = -1, -2

_MOST_CODES = 1 << 62
"""Above so many combinations of values, those that occur are numbered apart."""


def recall(knowledge: "Knowledge", columns: Columns) -> None:
    """Take in all steps of a log."""
    _Recall(knowledge, columns).run()


class _Recall:
    def __init__(self, knowledge: "Knowledge", columns: Columns) -> None:
        self.knowledge, self.columns = knowledge, columns
        believed = knowledge.believed
        self.steps = Steps(columns, believed.timing, knowledge.kinds)
        self.states = [self.steps.walk(one) for one in believed.moves]
        self.at = self.steps.at
        self.seen, self.after = columns.seen[self.at], columns.seen[self.at + 1]
        self.label = columns.labels[self.at + 1]
        self.first = columns.offsets[:-1]

    def run(self) -> None:
        knowledge, rewards = self.knowledge, self.columns.rewards
        paid, times = np.unique(rewards, return_counts=True)
        knowledge.usual = float(paid[times.argmax()])
        knowledge.least, knowledge.most = float(paid[0]), float(paid[-1])
        knowledge.ends = bool(self.steps.ended.any())
        self._take_steps()
        self._note_answers()
        self._note_contexts()
        self._note_words()
        self._note_starts()

    def _take_steps(self) -> None:
        """Enter each kind of step, in the order in which they came up first."""
        knowledge, columns = self.knowledge, self.columns
        located = np.min(self.states, axis=0) >= 0
        read = columns.labels[self.at] if knowledge.lag else self.label
        after = [
            moves[np.maximum(state, 0), read]
            for moves, state in zip(knowledge.believed.moves, self.states, strict=True)
        ]
        kinds: list[Any] = [self.seen, columns.actions, self.after, read, self.steps.ended]
        places = np.flatnonzero(located)
        chosen = self.chosen = places[
            _first_of_each([one[places] for one in (*kinds, *self.states)])
        ]
        situations = list(
            zip(*(one[chosen].tolist() for one in (self.seen, *self.states)), strict=True)
        )
        led = list(zip(*(one[chosen].tolist() for one in (self.after, *after)), strict=True))
        following, reward, labels = knowledge.following, knowledge.reward, knowledge.read
        row_of, unsettled = knowledge.row, knowledge.unsettled
        for situation, action, paid, label, ended, target in zip(
            situations,
            columns.actions[chosen].tolist(),
            columns.rewards[chosen].tolist(),
            read[chosen].tolist(),
            self.steps.ended[chosen].tolist(),
            led,
            strict=True,
        ):
            row = row_of(situation)
            labels[row][action] = label
            if ended:
                comes = _ENDS
            elif min(target) < 0:
                continue
            else:
                comes = row_of(target)
            was = following[row][action]
            if was == _UNKNOWN and (row, action) not in unsettled:
                following[row][action], reward[row][action] = comes, paid
                knowledge.known += 1
            elif was not in (_UNKNOWN, comes):
                unsettled.add((row, action))
                following[row][action] = _UNKNOWN
                knowledge.known -= 1

    def _note_answers(self) -> None:
        """Note what was answered in which state, which answers are notable, and what labels are."""
        knowledge, columns, chosen = self.knowledge, self.columns, self.chosen
        observation, action = self.seen[chosen].tolist(), columns.actions[chosen].tolist()
        told, led_to = self.states[0][chosen].tolist(), self.after[chosen].tolist()
        rewards, ended = columns.rewards[chosen].tolist(), self.steps.ended[chosen].tolist()
        for place, kind in enumerate(knowledge.kinds):
            answer: list[Any] = led_to
            if kind != "transition":
                answer = rewards if kind == "reward" else ended
            own = () if place == 0 else (self.states[place][chosen].tolist(),)
            knowledge.answers[place].update(
                zip(zip(*own, told, observation, action, strict=True), answer, strict=True)
            )
        knowledge.outcomes.note_all(
            self.states[0][chosen], self.seen[chosen], columns.actions[chosen], self.after[chosen]
        )
        knowledge.guess.update(zip(zip(observation, action, strict=True), led_to, strict=True))
        labels = (columns.labels[self.at] if knowledge.lag else self.label)[chosen].tolist()
        come = list(zip(rewards, ended, strict=True))
        paying = self.states[1][chosen].tolist()
        knowledge.usually.update(zip(zip(paying, labels, strict=True), come, strict=True))
        knowledge.usually.update(zip(zip(paying, labels, action, strict=True), come, strict=True))
        question, after = self.steps.question, self.after
        first = np.empty(self.steps.questions, after.dtype)
        first[question] = after
        notable = (
            self.steps.ended | (columns.rewards != knowledge.usual) | (first[question] != after)
        )
        self.notable: Flags = np.zeros(self.steps.questions, bool)
        self.notable[question[notable]] = True
        shown = np.flatnonzero(self.notable[question])
        knowledge.notable.update(
            zip(self.seen[shown].tolist(), columns.actions[shown].tolist(), strict=True)
        )
        ended_at = np.flatnonzero(self.steps.ended)
        knowledge.ending.update(
            zip(self.seen[ended_at].tolist(), columns.actions[ended_at].tolist(), strict=True)
        )
        pairs = np.unique(after.astype(np.int64) * (int(self.label.max()) + 1) + self.label)
        for one, label in zip(*np.divmod(pairs, int(self.label.max()) + 1), strict=True):
            if knowledge.label_at.setdefault(int(one), int(label)) != label:
                knowledge.label_at[int(one)] = -2

    def _note_words(self) -> None:
        """Keep the labels of each episode but for plain ones, and each once in a row."""
        columns, labels = self.columns, self.columns.labels
        first = self.first + np.arange(len(self.first))
        kept = ~np.isin(labels, list(self.knowledge.plain))
        kept[first] = False
        for start, stop in zip(first, np.append(first[1:], len(columns.labels)), strict=True):
            read = labels[start:stop][kept[start:stop]]
            if len(read):
                once = np.append(True, read[1:] != read[:-1])
                self.knowledge.labels_read.append(read[once].tolist())

    def _note_starts(self) -> None:
        knowledge = self.knowledge
        labels = self.columns.labels[self.at[self.first]]
        rows = np.stack([self.seen[self.first], *(one[self.first] for one in self.states), labels])
        kinds, counts = np.unique(rows, axis=1, return_counts=True)
        for (*situation, label), count in zip(kinds.T.tolist(), counts.tolist(), strict=True):
            if min(situation) >= 0:
                row = knowledge.row(tuple(situation))
                knowledge.starts[row] = knowledge.starts.get(row, 0) + count
                knowledge.began.setdefault(row, (situation[0], label))
                knowledge.beginnings.add((situation[0], label))

    def _note_contexts(self) -> None:
        """Note which notable questions were asked in which context."""
        knowledge, columns = self.knowledge, self.columns
        read = columns.labels[self.at].astype(np.int64)  # the label read before each step
        if knowledge.lag:
            read[1:] = read[:-1].copy()
        opens = ~np.isin(read, list(knowledge.plain))
        opens[self.first] = True
        opened = np.flatnonzero(opens)
        columns_of_contexts = self._contexts(read, opened)
        _, at, number = np.unique(
            _row_codes(columns_of_contexts), return_index=True, return_inverse=True
        )
        contexts = [_context(row) for row in np.stack(columns_of_contexts)[:, at].T.tolist()]
        chosen = np.flatnonzero(self.notable[self.steps.question])
        opening = (np.cumsum(opens) - 1)[chosen]
        # The opening before, unless it is the first of all.
        context, before = number[opening], number[np.maximum(opening - 1, 0)]
        once = _first_of_each([context, before, self.steps.question[chosen]])
        for here, earlier, seen, action in zip(
            context[once].tolist(),
            before[once].tolist(),
            self.seen[chosen[once]].tolist(),
            columns.actions[chosen[once]].tolist(),
            strict=True,
        ):
            knowledge.note_question(contexts[here], contexts[earlier], (seen, action))

    def _contexts(self, read: NDArray[np.int64], since: NDArray[np.int64]) -> list[Codes]:
        """Return the contexts that openings make, as columns."""
        begins = np.isin(since, self.first)
        before = np.maximum(since - 1, 0)
        columns: list[Any] = [
            begins,
            np.where(begins, self.seen[since], read[since]),
            np.where(begins, self.columns.labels[self.at][since], 0),
            *(np.where(begins, 0, one[before]) for one in self.states),
        ]
        return columns


def _first_of_each(columns: list[Any]) -> NDArray[np.int64]:
    """Return the places at which a row comes up that did not come up before."""
    _, first = np.unique(_row_codes(columns), return_index=True)
    return np.sort(first)


def _row_codes(columns: list[Any]) -> NDArray[np.int64]:
    """Return a number for each row, the same for rows that are the same; values are −1 or above."""
    code, codes = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        values = int(column.max(initial=0)) + 2
        if codes * values > _MOST_CODES:  # number those that occur, without gaps
            kept, code = np.unique(code, return_inverse=True)
            code, codes = code.astype(np.int64), len(kept)
        code, codes = code * values + column + 1, codes * values
    return code


def _rows(chosen: NDArray[np.int64], *columns: Codes) -> list[tuple[int, ...]]:
    return list(zip(*(one[chosen].tolist() for one in columns), strict=True))


def _context(row: list[int]) -> "Context":
    begins, value, label, *states = row
    return (-1, value, label) if begins else (value, *states)
