"""Add all steps of a buffer to an `EmpiricalModel` at once, with the same result as step by step.

The machines explain every step, so nothing is compared, and equal steps are added once. This is
several times as fast as step by step.
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

_MAX_CODES = 1 << 62
"""Number of combinations of values above which only those in use are numbered."""


def add_all_steps(model: "EmpiricalModel", columns: Columns) -> None:
    """Add all steps to an empty model."""
    _BulkUpdate(model, columns).run()


class _BulkUpdate:
    def __init__(self, model: "EmpiricalModel", columns: Columns) -> None:
        self.model, self.columns = model, columns
        tables = model.tables
        self.steps = QueriedSteps.of_columns(tables, columns)
        self.states = [self.steps.walk(table) for table in tables.transitions]
        self.positions = columns.positions
        self.label = columns.labels[self.positions + 1]
        self.read = columns.labels[self.positions] if model.lag else self.label
        self.first = columns.offsets[:-1]
        self.is_neutral = np.zeros(int(columns.labels.max()) + 1, bool)
        self.is_neutral[[code for code in model.neutral_labels if code < len(self.is_neutral)]] = (
            True
        )
        located = np.flatnonzero(np.min(self.states, axis=0) >= 0)
        distinct = [
            self.steps.query,
            columns.observations_after,
            self.read,
            self.steps.terminated,
            *self.states,
        ]
        self.chosen = located[_first_of_each([column[located] for column in distinct])]
        """The first of all equal steps, in the order of occurrence."""

    def run(self) -> None:
        model = self.model
        rewards, number = self.columns.reward_levels
        model.usual_reward = float(rewards[np.bincount(number).argmax()])
        model.least, model.most = float(rewards[0]), float(rewards[-1])
        model.terminates = bool(self.steps.terminated.any())
        self._add_transitions()
        self._note_outputs()
        self._note_informative()
        self._note_contexts()
        self._note_words()
        self._note_starts()

    def _add_transitions(self) -> None:
        """Add each step; augmented states are numbered in the order of occurrence."""
        model, columns, chosen = self.model, self.columns, self.chosen
        states = [column[chosen] for column in self.states]
        action, read = columns.actions[chosen].astype(np.int64), self.read[chosen]
        next_states = [
            table[state, read]
            for table, state in zip(model.tables.transitions, states, strict=True)
        ]
        ends = self.steps.terminated[chosen]
        goes_on = ~ends & (np.min(next_states, axis=0) >= 0)
        # Each augmented state, and after it the next one.
        here, there = (
            [columns.observations_before[chosen], *states],
            [columns.observations_after[chosen], *next_states],
        )
        met = np.stack([np.ones(len(chosen), bool), goes_on], axis=1).ravel()
        pairs = [np.stack(both, axis=1).ravel()[met] for both in zip(here, there, strict=True)]
        first, number = _core.numbered(_row_codes(pairs))
        model.augmented_states = list(
            zip(*(column[first].tolist() for column in pairs), strict=True)
        )
        model.rows = dict(zip(model.augmented_states, range(len(first)), strict=True))
        at = np.cumsum(met) - 1
        row, comes = number[at[::2]].astype(np.int64), np.full(len(chosen), _ENDS, np.int32)
        comes[goes_on] = number[at[1::2]][goes_on]
        actions = model.n_actions
        following = np.full((len(first), actions), _UNKNOWN, np.int32)
        reward, label = np.zeros(following.shape), np.full(following.shape, -1, np.int32)
        label[row, action] = read  # the last one stays
        valid = np.flatnonzero(ends | goes_on)
        step = row[valid] * actions + action[valid]
        once, which = _core.numbered(step)
        following.ravel()[step[once]] = comes[valid][once]
        reward.ravel()[step[once]] = columns.rewards[chosen][valid][once]
        differs = comes[valid] != comes[valid][once][which]
        unsettled = np.unique(step[differs])
        following.ravel()[unsettled] = _UNKNOWN
        model.nondeterministic.update(
            map(tuple, np.stack(np.divmod(unsettled, actions), 1).tolist())
        )
        model.n_known = len(once) - len(unsettled)
        model.next_row, model.reward = following.tolist(), reward.tolist()
        model.label_read = label.tolist()

    def _note_outputs(self) -> None:
        """Note outputs, outcomes, rewards by label, and the labels of observations."""
        model, columns, chosen = self.model, self.columns, self.chosen
        states, actions = [column[chosen] for column in self.states], columns.actions[chosen]
        before, after = columns.observations_before[chosen], columns.observations_after[chosen]
        rewards, ended = columns.rewards[chosen], self.steps.terminated[chosen]
        values: dict[str, Any] = {"transition": after, "reward": rewards}
        for machine, name in enumerate(model.names):
            model.outputs.note_all(machine, states, before, actions, values.get(name, ended))
        model.outcomes.note_all(states[0], before, actions, after)
        likely = _last_of_each(self.steps.query[chosen])
        model.last_outcome.update(
            zip(_rows(likely, before, actions), after[likely].tolist(), strict=True)
        )
        label = self.read[chosen]
        for key in ((states[1], label), (states[1], label, actions)):
            last = _last_of_each(_row_codes(list(key)))
            model.last_reward.update(
                zip(_rows(last, *key), _rows(last, rewards, ended), strict=True)
            )
        labels = len(self.is_neutral)
        pairs, _ = distinct_pairs(
            columns.observations_after, self.label, int(columns.observations.max()) + 1, labels
        )
        seen, label = np.divmod(pairs, labels)
        varies = np.bincount(seen)[seen] > 1
        model.label_of.update(zip(seen.tolist(), np.where(varies, -2, label).tolist(), strict=True))

    def _note_informative(self) -> None:
        """Note the queries with an unusual reward, an end of an episode or varying outcomes."""
        model, columns, question = self.model, self.columns, self.steps.query
        codes, choices = columns.queries[0], columns.n_actions
        self.queries: list[Query] = list(
            zip(*(part.tolist() for part in np.divmod(codes, choices)), strict=True)
        )
        last = np.empty(len(codes), np.int32)
        last[question] = columns.observations_after
        is_unusual = self.steps.terminated | (columns.rewards != model.usual_reward)
        is_unusual |= last[question] != columns.observations_after
        self.is_informative: Flags = np.zeros(len(codes), bool)
        self.is_informative[question[is_unusual]] = True
        ending = np.zeros(len(codes), bool)
        ending[question[self.steps.terminated]] = True
        model.informative.update(self._queries(np.flatnonzero(self.is_informative)))
        model.terminating.update(self._queries(np.flatnonzero(ending)))

    def _queries(self, numbers: NDArray[Any]) -> "set[Query]":
        return {self.queries[number] for number in numbers.tolist()}

    def _note_words(self) -> None:
        """Store the labels of each episode without neutral ones and repetitions."""
        labels = self.columns.labels
        begins = np.zeros(len(labels), bool)
        begins[self.first + np.arange(len(self.first))] = True
        read = np.where(begins, -1, labels)[begins | ~self.is_neutral[labels]]
        read = np.append(read[1:], -1)
        self.model.labels_in_order = read[np.append(True, read[1:] != read[:-1])]

    def _note_starts(self) -> None:
        model, first = self.model, self.first
        labels = self.columns.labels[self.positions[first]]
        columns = [
            self.columns.observations_before[first],
            *(column[first] for column in self.states),
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
        """Note the informative queries asked in each context, and after each two labels."""
        model, columns, question = self.model, self.columns, self.steps.query
        read = columns.labels[self.positions]  # the label read before each step
        if model.lag:
            read[1:] = read[:-1].copy()
        opens = ~self.is_neutral[read] | self.steps.first
        of_context = self._contexts(read, np.flatnonzero(opens))
        at, number = _core.numbered(_row_codes(of_context))
        contexts = [_context(row) for row in _rows(at, *of_context)]
        chosen = np.flatnonzero(self.is_informative[question])
        opening = (np.cumsum(opens) - 1)[chosen]
        context, query = number[opening], question[chosen]
        for number_of, queries in _grouped(context, query):
            model.queries_after[contexts[number_of]] = self._queries(queries)
        # A first label that is read counts like any other.
        if model.reads_first_label:
            for begun in [context for context in model.queries_after if context[0] < 0]:
                if begun[2] not in model.neutral_labels:
                    same = (begun[2], *(0 for _ in model.sizes))
                    model.queries_after.setdefault(same, set()).update(model.queries_after[begun])
        # The opening before is of the same episode, if it is not one that begins.
        later = np.flatnonzero(of_context[0][opening] == 0)
        before = number[opening[later] - 1].astype(np.int64)
        labels = len(self.is_neutral)
        read_last = of_context[1][opening[later]]
        for pair, queries in _grouped(before * labels + read_last, query[later]):
            earlier, label = divmod(pair, labels)
            model.queries_after_pair[contexts[earlier], label] = self._queries(queries)

    def _contexts(self, read: Codes, since: NDArray[np.int64]) -> list[Codes]:
        """Return the contexts that begin at these steps, as columns."""
        begins = self.steps.first[since]
        before = np.maximum(since - 1, 0)
        columns: list[Any] = [
            begins,
            np.where(begins, self.columns.observations_before[since], read[since]),
            np.where(begins, self.columns.labels[self.positions[since]], 0),
            *(np.where(begins, 0, column[before]) for column in self.states),
        ]
        return columns


def _first_of_each(columns: list[Any]) -> NDArray[np.int64]:
    """Return the positions of the first occurrence of each row."""
    first, _ = _core.numbered(_row_codes(columns))
    return first


def _last_of_each(codes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the position of the last occurrence of each code."""
    first, _ = _core.numbered(np.ascontiguousarray(codes[::-1], np.int64))
    last: NDArray[np.int64] = len(codes) - 1 - first
    return last


def _grouped(keys: NDArray[Any], values: Codes) -> Iterator[tuple[int, Codes]]:
    """Yield each key with its distinct values."""
    order = _first_of_each([keys, values])
    order = order[np.argsort(keys[order], kind="stable")]
    begins = np.flatnonzero(np.append(True, keys[order][1:] != keys[order][:-1]))
    if len(order):
        yield from zip(
            keys[order[begins]].tolist(), np.split(values[order], begins[1:]), strict=True
        )


def _row_codes(columns: list[Any]) -> NDArray[np.int64]:
    """Return a number for each row, equal for equal rows; values are -1 or above."""
    code, codes = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        values = int(column.max(initial=0)) + 2
        if codes * values > _MAX_CODES:  # number those that occur, without gaps
            distinct, code = np.unique(code, return_inverse=True)
            code, codes = code.astype(np.int64), len(distinct)
        code, codes = code * values + column + 1, codes * values
    return code


def _rows(chosen: NDArray[np.int64], *columns: NDArray[Any]) -> list[Any]:
    return list(zip(*(column[chosen].tolist() for column in columns), strict=True))


def _context(row: tuple[int, ...]) -> "Context":
    begins, value, label, *states = row
    return (-1, value, label) if begins else (value, *states)
