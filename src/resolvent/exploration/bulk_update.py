"""All that was seen, taken in at once: what a `Knowledge` would hold had it seen step by step.

The moves that are believed in explain every step, so that nothing has to be compared; each
kind of step is looked at once, however often it was taken.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.exploration.buffer import Columns
from resolvent.exploration.tables import Flags, QueriedSteps
from resolvent.traces.vocabulary import Codes, distinct_pairs

if TYPE_CHECKING:
    from resolvent.exploration.empirical_model import Context, EmpiricalModel, Query

_ENDS, _UNKNOWN = -1, -2

_MOST_CODES = 1 << 62
"""Above so many combinations of values, those that occur are numbered apart."""


def recall(model: "EmpiricalModel", columns: Columns) -> None:
    """Take in all steps of a log."""
    _Recall(model, columns).run()


class _Recall:
    def __init__(self, model: "EmpiricalModel", columns: Columns) -> None:
        self.model, self.columns = model, columns
        believed = model.believed
        self.steps = QueriedSteps.of_columns(believed, columns)
        self.states = [self.steps.walk(one) for one in believed.moves]
        self.at = self.steps.at
        self.label = columns.labels[self.at + 1]
        self.read = columns.labels[self.at] if model.lag else self.label
        self.first = columns.offsets[:-1]
        self.plain = np.zeros(int(columns.labels.max()) + 1, bool)
        self.plain[[one for one in model.neutral_labels if one < len(self.plain)]] = True
        located = np.flatnonzero(np.min(self.states, axis=0) >= 0)
        kinds = [
            self.steps.question,
            columns.observations_after,
            self.read,
            self.steps.ended,
            *self.states,
        ]
        self.chosen = located[_first_of_each([one[located] for one in kinds])]
        """The first step of each kind, in the order in which they came up."""

    def run(self) -> None:
        model = self.model
        paid, times = self.columns.reward_levels
        model.usual_reward = float(paid[np.bincount(times).argmax()])
        model.least, model.most = float(paid[0]), float(paid[-1])
        model.terminates = bool(self.steps.ended.any())
        self._take_steps()
        self._note_answers()
        self._note_notable()
        self._note_contexts()
        self._note_words()
        self._note_starts()

    def _take_steps(self) -> None:
        """Enter each kind of step: situations are numbered in the order in which they came up."""
        model, columns, chosen = self.model, self.columns, self.chosen
        states = [one[chosen] for one in self.states]
        action, read = columns.actions[chosen].astype(np.int64), self.read[chosen]
        led = [
            moves[state, read] for moves, state in zip(model.believed.moves, states, strict=True)
        ]
        ends = self.steps.ended[chosen]
        goes_on = ~ends & (np.min(led, axis=0) >= 0)
        # Each situation, and after it the one that follows.
        here, there = (
            [columns.observations_before[chosen], *states],
            [columns.observations_after[chosen], *led],
        )
        met = np.stack([np.ones(len(chosen), bool), goes_on], axis=1).ravel()
        pairs = [np.stack(two, axis=1).ravel()[met] for two in zip(here, there, strict=True)]
        first, number = _core.numbered(_row_codes(pairs))
        model.augmented_states = list(zip(*(one[first].tolist() for one in pairs), strict=True))
        model.rows = dict(zip(model.augmented_states, range(len(first)), strict=True))
        at = np.cumsum(met) - 1
        row, comes = number[at[::2]].astype(np.int64), np.full(len(chosen), _ENDS, np.int32)
        comes[goes_on] = number[at[1::2]][goes_on]
        actions = len(model.log.actions)
        following = np.full((len(first), actions), _UNKNOWN, np.int32)
        reward, label = np.zeros(following.shape), np.full(following.shape, -1, np.int32)
        label[row, action] = read  # the last one stays
        told = np.flatnonzero(ends | goes_on)
        step = row[told] * actions + action[told]
        once, which = _core.numbered(step)
        following.ravel()[step[once]] = comes[told][once]
        reward.ravel()[step[once]] = columns.rewards[chosen][told][once]
        differs = comes[told] != comes[told][once][which]
        unsettled = np.unique(step[differs])
        following.ravel()[unsettled] = _UNKNOWN
        model.nondeterministic.update(
            map(tuple, np.stack(np.divmod(unsettled, actions), 1).tolist())
        )
        model.n_known = len(once) - len(unsettled)
        model.next_row, model.reward = following.tolist(), reward.tolist()
        model.label_read = label.tolist()

    def _note_answers(self) -> None:
        """Note what was answered in which state, what is likely, and what labels are."""
        model, columns, chosen = self.model, self.columns, self.chosen
        states, actions = [one[chosen] for one in self.states], columns.actions[chosen]
        before, after = columns.observations_before[chosen], columns.observations_after[chosen]
        rewards, ended = columns.rewards[chosen], self.steps.ended[chosen]
        told: dict[str, Any] = {"transition": after, "reward": rewards}
        for place, kind in enumerate(model.kinds):
            model.outputs.note_all(place, states, before, actions, told.get(kind, ended))
        model.outcomes.note_all(states[0], before, actions, after)
        likely = _last_of_each(self.steps.question[chosen])
        model.last_outcome.update(
            zip(_rows(likely, before, actions), after[likely].tolist(), strict=True)
        )
        label = self.read[chosen]
        for key in ((states[1], label), (states[1], label, actions)):
            last = _last_of_each(_row_codes(list(key)))
            model.last_reward.update(
                zip(_rows(last, *key), _rows(last, rewards, ended), strict=True)
            )
        labels = len(self.plain)
        pairs, _ = distinct_pairs(
            columns.observations_after, self.label, int(columns.observations.max()) + 1, labels
        )
        seen, label = np.divmod(pairs, labels)
        varies = np.bincount(seen)[seen] > 1
        model.label_of.update(zip(seen.tolist(), np.where(varies, -2, label).tolist(), strict=True))

    def _note_notable(self) -> None:
        """Note the questions whose answer pays, ends an episode or varies."""
        model, columns, question = self.model, self.columns, self.steps.question
        asked, choices = columns.queries[0], columns.n_actions
        self.questions: list[Query] = list(
            zip(*(one.tolist() for one in np.divmod(asked, choices)), strict=True)
        )
        last = np.empty(len(asked), np.int32)
        last[question] = columns.observations_after
        shown = self.steps.ended | (columns.rewards != model.usual_reward)
        shown |= last[question] != columns.observations_after
        self.notable: Flags = np.zeros(len(asked), bool)
        self.notable[question[shown]] = True
        ending = np.zeros(len(asked), bool)
        ending[question[self.steps.ended]] = True
        model.informative.update(self._named(np.flatnonzero(self.notable)))
        model.terminating.update(self._named(np.flatnonzero(ending)))

    def _named(self, questions: NDArray[Any]) -> "set[Query]":
        return {self.questions[one] for one in questions.tolist()}

    def _note_words(self) -> None:
        """Keep the labels of each episode but for plain ones, and each once in a row."""
        labels = self.columns.labels
        begins = np.zeros(len(labels), bool)
        begins[self.first + np.arange(len(self.first))] = True
        read = np.where(begins, -1, labels)[begins | ~self.plain[labels]]
        read = np.append(read[1:], -1)
        self.model.labels_read = read[np.append(True, read[1:] != read[:-1])]

    def _note_starts(self) -> None:
        model, first = self.model, self.first
        labels = self.columns.labels[self.at[first]]
        columns = [
            self.columns.observations_before[first],
            *(one[first] for one in self.states),
            labels,
        ]
        _, at, counts = np.unique(_row_codes(columns), return_index=True, return_counts=True)
        for (*situation, label), count in zip(_rows(at, *columns), counts.tolist(), strict=True):
            if min(situation) >= 0:
                row = model.row(tuple(situation))
                model.starts[row] = model.starts.get(row, 0) + count
                model.start_symbols.setdefault(row, (situation[0], label))
                model.initial_symbols.add((situation[0], label))

    def _note_contexts(self) -> None:
        """Note which notable questions were asked in which context, and after which two labels."""
        model, columns, question = self.model, self.columns, self.steps.question
        read = columns.labels[self.at]  # the label read before each step
        if model.lag:
            read[1:] = read[:-1].copy()
        opens = ~self.plain[read] | self.steps.first
        of_context = self._contexts(read, np.flatnonzero(opens))
        at, number = _core.numbered(_row_codes(of_context))
        contexts = [_context(row) for row in _rows(at, *of_context)]
        chosen = np.flatnonzero(self.notable[question])
        opening = (np.cumsum(opens) - 1)[chosen]
        context, asked = number[opening], question[chosen]
        for one, questions in _grouped(context, asked):
            model.queries_after[contexts[one]] = self._named(questions)
        # A first label that counts is read as any other is.
        if model.first + model.lag == 0:
            for begun in [one for one in model.queries_after if one[0] < 0]:
                if begun[2] not in model.neutral_labels:
                    same = (begun[2], *(0 for _ in model.sizes))
                    model.queries_after.setdefault(same, set()).update(model.queries_after[begun])
        # The opening before is of the same episode, if it is not one that begins.
        later = np.flatnonzero(of_context[0][opening] == 0)
        before = number[opening[later] - 1].astype(np.int64)
        labels = len(self.plain)
        read_last = of_context[1][opening[later]]
        for pair, questions in _grouped(before * labels + read_last, asked[later]):
            earlier, label = divmod(pair, labels)
            model.queries_after_pair[contexts[earlier], label] = self._named(questions)

    def _contexts(self, read: Codes, since: NDArray[np.int64]) -> list[Codes]:
        """Return the contexts that openings make, as columns."""
        begins = self.steps.first[since]
        before = np.maximum(since - 1, 0)
        columns: list[Any] = [
            begins,
            np.where(begins, self.columns.observations_before[since], read[since]),
            np.where(begins, self.columns.labels[self.at[since]], 0),
            *(np.where(begins, 0, one[before]) for one in self.states),
        ]
        return columns


def _first_of_each(columns: list[Any]) -> NDArray[np.int64]:
    """Return the places at which a row comes up that did not come up before."""
    first, _ = _core.numbered(_row_codes(columns))
    return first


def _last_of_each(codes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the place at which each code comes up for the last time."""
    first, _ = _core.numbered(np.ascontiguousarray(codes[::-1], np.int64))
    last: NDArray[np.int64] = len(codes) - 1 - first
    return last


def _grouped(keys: NDArray[Any], values: Codes) -> Iterator[tuple[int, Codes]]:
    """Return each key with the values that it has, each of them once."""
    order = _first_of_each([keys, values])
    order = order[np.argsort(keys[order], kind="stable")]
    begins = np.flatnonzero(np.append(True, keys[order][1:] != keys[order][:-1]))
    if len(order):
        yield from zip(
            keys[order[begins]].tolist(), np.split(values[order], begins[1:]), strict=True
        )


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


def _rows(chosen: NDArray[np.int64], *columns: NDArray[Any]) -> list[Any]:
    return list(zip(*(one[chosen].tolist() for one in columns), strict=True))


def _context(row: tuple[int, ...]) -> "Context":
    begins, value, label, *states = row
    return (-1, value, label) if begins else (value, *states)
