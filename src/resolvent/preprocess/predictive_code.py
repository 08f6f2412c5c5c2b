"""Predictive code: the bits needed to encode traces, given edges that discretize their numbers.

`Steps` turns traces into columns; `PredictiveCode` encodes each output, and the next
observation's intervals, by counts in a context: the action, the present observation, and one
step of history. An interval costs the difference from the bits of its overall frequency: a
useful prediction costs less than 0, and wide intervals gain nothing by being easy to predict.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import log, log2, log_gamma
from resolvent.preprocess.intervals import Floats, Intervals, Parts, Position, part_index
from resolvent.traces.schema import ACTION, OBSERVATION
from resolvent.traces.symbols import Symbol
from resolvent.traces.trace_set import StepColumn, TraceSet

Ints: TypeAlias = NDArray[np.int64]
Edges: TypeAlias = tuple[float, ...]
N = TypeVar("N", bound=np.generic)

BINS: Final = 12  # maximum number of intervals of a number
MAX_OUTPUT_VALUES: Final = 32  # maximum number of different numbers in an output; more are grouped
OUTPUT_CELLS: Final = 8  # number of such groups, with equally many steps in each


class Column(NamedTuple):
    """A code for each step, and the number of possible codes."""

    codes: Ints
    size: int


class StepNumber(NamedTuple):
    """A number's value before, at and after each step.

    It is nan if text takes its place, and before the first step of a trace.
    """

    before: Floats
    now: Floats
    after: Floats


@dataclass(frozen=True)
class Steps:
    """The columns of steps to encode, and the columns of their contexts.

    Attributes:
        numbers: The numbers to discretize.
        actions: The actions without these numbers.
        rest: The observations without these numbers.
        labels: The labels of the observations.
        previous_outputs: All outputs at the step before.
        outputs: The outputs to encode besides the numbers.
        encodes_numbers: Whether the numbers after a step are encoded, too.
    """

    numbers: tuple[StepNumber, ...]
    actions: Column
    rest: Column
    labels: Column
    previous_outputs: Column
    outputs: tuple[Column, ...]
    encodes_numbers: bool

    @classmethod
    def of(
        cls,
        traces: TraceSet,
        positions: Sequence[Position],
        outputs: Sequence[str],
        max_steps: int,
        of: str = OBSERVATION,
    ) -> "Steps":
        """Return the first steps of traces, with the numbers at these positions.

        `outputs` are columns of steps, `"observation"` and `"terminated"`. `of` names the column
        with the numbers: observations or actions.
        """
        rows = min(traces.steps, max_steps)
        is_first = np.zeros(traces.steps, bool)
        is_first[traces.offsets[:-1]] = True
        is_first = is_first[:rows]
        now = traces.at_step(traces.observation_codes)[:rows].astype(np.int64)
        after = traces.after_step(traces.observation_codes)[:rows].astype(np.int64)
        actions = traces.action_codes[:rows].astype(np.int64)
        labels = traces.at_step(traces.label_codes)[:rows].astype(np.int64)
        mask = Parts.of({path: Intervals(()) for path in positions}, {})  # all numbers are equal
        rest, action_rest = (
            _distinct(map(mask, values) if name == of else values)
            for name, values in ((OBSERVATION, traces.observations), (ACTION, traces.actions))
        )
        columns = [
            _output_codes(traces.column(name), rows) for name in outputs if name != OBSERVATION
        ]
        all_outputs = together(Column(np.zeros(rows, np.int64), 1), *columns)
        if OBSERVATION in outputs and rest.size > 1:
            columns.append(Column(rest.codes[after], rest.size))
        at = (now, after) if of == OBSERVATION else (actions, np.roll(actions, -1))
        return cls(
            tuple(_step_number(traces.values[of], path, *at, is_first) for path in positions),
            Column(action_rest.codes[actions], action_rest.size),
            Column(rest.codes[now], rest.size),
            Column(labels, len(traces.labels)),
            Column(_before(all_outputs.codes, is_first, all_outputs.size), all_outputs.size + 1),
            tuple(columns),
            encodes_numbers=OBSERVATION in outputs and of == OBSERVATION,
        )

    def __len__(self) -> int:
        return len(self.actions.codes)


def together(*columns: Column) -> Column:
    """Return a code for each combination of several codes.

    >>> together(Column(np.array([0, 1, 0]), 2), Column(np.array([4, 0, 4]), 5))
    Column(codes=array([0, 1, 0]), size=2)
    """
    codes, size = columns[0]
    for column in columns[1:]:
        pairs = codes * column.size + column.codes
        if size * column.size > 8 * len(pairs):
            distinct, codes = np.unique(pairs, return_inverse=True)
            size = len(distinct)
        else:  # a table of all pairs is faster than sorting
            occurs = np.zeros(size * column.size, bool)
            occurs[pairs] = True
            codes, size = (np.cumsum(occurs) - 1)[pairs], int(occurs.sum())
    return Column(codes, size)


def _distinct(values: Iterable[Symbol]) -> Column:
    """Return the number of each value among the distinct ones."""
    number: dict[Symbol, int] = {}
    codes = [number.setdefault(value, len(number)) for value in values]
    return Column(np.array(codes, np.int64), len(number))


def _step_number(
    symbols: Sequence[Symbol], path: Position, now: Ints, after: Ints, is_first: NDArray[np.bool_]
) -> StepNumber:
    parts: list[Any] = list(symbols)
    for key in path:
        index = part_index(parts[0], key)
        parts = [part[index] if isinstance(key, int) else part[index][1] for part in parts]
    numbers = (math.nan if isinstance(part, str) else part for part in parts)
    values = np.array(list(numbers), np.float64)
    return StepNumber(_before(values[now], is_first, math.nan), values[now], values[after])


def _output_codes(column: StepColumn, rows: int) -> Column:
    """Return a column's codes; numbers of many different values are grouped."""
    values, codes = column.values, column.codes[:rows].astype(np.int64)
    if len(values) <= MAX_OUTPUT_VALUES or not all(type(value) in (int, float) for value in values):
        return Column(codes, len(values))
    numbers = np.array(values, np.float64)[codes]
    edges = np.quantile(numbers, np.arange(1, OUTPUT_CELLS) / OUTPUT_CELLS)
    return Column(np.searchsorted(edges, numbers, side="right"), OUTPUT_CELLS)


def _before(values: NDArray[N], is_first: NDArray[np.bool_], missing: float) -> NDArray[N]:
    """Return for each step the value at the step before, `missing` at first steps."""
    shifted = np.roll(values, 1)
    shifted[is_first] = missing
    return shifted


class Bits(NamedTuple):
    """The length of the code of all outputs, and of the numbers after each step."""

    outputs: float
    numbers: float

    @property
    def total(self) -> float:
        """The length of both."""
        return self.outputs + self.numbers


class _Cells(NamedTuple):
    """The intervals of a number before, at and after each step."""

    before: Column
    now: Column
    after: Column


class PredictiveCode:
    """Encodes the same steps under different edges; caches unchanged parts.

    Each output has the cheapest of a few contexts: the action with the observation, alone or
    with the observation before, the outputs before or the label; for outputs other than numbers
    also the action with one number alone.
    """

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        n_halves = 2 * len(steps) + max([BINS + 2, *(output.size for output in steps.outputs)])
        self._log_gamma = _log_gamma_of_halves(n_halves)
        # Edges of one number are varied at a time, and most parts stay as they are.
        keep = lru_cache(maxsize=2 * len(steps.numbers))
        self._cells_of = keep(self._cells)
        self._rest_of = keep(self._rest)
        self._bits_of_single = keep(self._single_bits)

    def bits(self, edges: Sequence[Edges], varied: int = 0) -> Bits:
        """Return the length of the code under these edges.

        `varied` is the number whose edges differ from those of the last calls.
        """
        steps = self.steps
        cells = [self._cells_of(*row) for row in enumerate(edges)]
        rest, rest_before = self._rest_of(varied, (*edges[:varied], *edges[varied + 1 :]))
        observed = together(rest, cells[varied].now)
        contexts = [
            observed,
            together(observed, rest_before, cells[varied].before),
            together(observed, steps.previous_outputs),
        ]
        if steps.labels.size > 1:
            contexts.append(together(observed, steps.labels))
        single_bits = [self._bits_of_single(*row) for row in enumerate(edges)]
        numbers = [cell.after for cell in cells] if steps.encodes_numbers else []
        min_bits = self._min_bits([*steps.outputs, *numbers], contexts)
        bits_of_numbers = zip(min_bits[len(steps.outputs) :], numbers, strict=True)
        return Bits(
            sum(map(min, zip(min_bits, *single_bits, strict=False))),
            sum((bits - _frequency_bits(number) for bits, number in bits_of_numbers), 0.0),
        )

    def _cells(self, number: int, edges: Edges) -> _Cells:
        values = self.steps.numbers[number]
        return _Cells(*(_cell_codes(x, edges) for x in (values.before, values.now, values.after)))

    def _rest(self, varied: int, edges: tuple[Edges, ...]) -> tuple[Column, Column]:
        """Return the action and observation without one number, and the latter before the step.

        `edges` are those of the other numbers.
        """
        steps = self.steps
        numbers = (number for number in range(len(steps.numbers)) if number != varied)
        cells = [self._cells_of(*row) for row in zip(numbers, edges, strict=True)]
        constant = Column(np.zeros(len(steps), np.int64), 1)
        return (
            together(steps.actions, steps.rest, *(cell.now for cell in cells)),
            together(constant, *(cell.before for cell in cells)),
        )

    def _single_bits(self, number: int, edges: Edges) -> list[float]:
        """Return the bits of each output by the action and one number, or the outputs before."""
        observed = together(self.steps.actions, self._cells_of(number, edges).now)
        contexts = [observed, together(observed, self.steps.previous_outputs)]
        return self._min_bits(self.steps.outputs, contexts)

    def _min_bits(self, outputs: Iterable[Column], contexts: Iterable[Column]) -> list[float]:
        """Return the bits of each output in its cheapest context.

        Each context uses the estimator of Krichevsky and Trofimov: counts of the outputs so far,
        plus one half. The cost of learning a context is thus included.
        """
        log_gamma_of_halves = self._log_gamma
        counted = [(context.codes, _counts(context.codes)) for context in contexts]
        min_bits = []
        for output in outputs:
            bits = []
            for codes, counts in counted if output.size > 1 else ():
                pairs = _counts(codes * output.size + output.codes)
                learned = (
                    log_gamma_of_halves[2 * counts + output.size] - log_gamma_of_halves[output.size]
                )
                predicted = log_gamma_of_halves[2 * pairs + 1] - log_gamma_of_halves[1]
                bits.append(float(learned.sum() - predicted.sum()))
            min_bits.append(min(bits, default=0.0))
        return min_bits


def _log_gamma_of_halves(n_halves: int) -> Floats:
    """Return the logarithm to base 2 of the Gamma function at 1/2, 1, 3/2 and so on.

    >>> (_log_gamma_of_halves(8)[[2, 4, 6, 8]].round(9) + 0).tolist()  # of 1, 1, 2 and 6
    [0.0, 0.0, 1.0, 2.584962501]
    """
    return np.concatenate([[0.0], log_gamma(np.arange(1, n_halves + 1) / 2) / log(2)])


def _cell_codes(values: Floats, edges: Edges) -> Column:
    codes = np.searchsorted(np.array(edges), values, side="right")
    is_missing = np.isnan(values)
    codes[is_missing] = len(edges) + 1
    return Column(codes, len(edges) + 1 + bool(is_missing.any()))


def _counts(numbers: Ints) -> Ints:
    """Return the count of each number that occurs."""
    if numbers.max() < 8 * len(numbers):
        counts = np.bincount(numbers)
        return counts[counts > 0]
    return np.unique(numbers, return_counts=True)[1]


def _frequency_bits(output: Column) -> float:
    """Return the bits of encoding each value by its frequency."""
    counts = _counts(output.codes)
    return float((counts * log2(len(output.codes) / counts)).sum())
