"""Automatic discretization: edges at the values that help most to predict the next step.

Input: traces whose observations, or actions, are numbers. Output: a fitted `Discretizer`.

Edges are judged by a predictive code. `PredictiveCode` encodes each output, and the next
observation's intervals, by counts in a context: the action, the present observation, and one
step of history. An interval costs the difference from the bits of its overall frequency: a
useful prediction costs less than 0, and wide intervals gain nothing by being easy to predict.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import log, log2, log_gamma
from resolvent.preprocess.discretize import AUTO, Discretizer, distinct_traces, numbers_in
from resolvent.preprocess.intervals import (
    Floats,
    Intervals,
    Parts,
    Position,
    magnitude,
    part_index,
    shorter_numbers,
)
from resolvent.traces.digest import trace_hashes
from resolvent.traces.schema import ACTION, OBSERVATION, TERMINATED, default_outputs
from resolvent.traces.symbols import Symbol
from resolvent.traces.trace_set import StepColumn, TraceSet
from resolvent.traces.vocabulary import distinct_numbers

Ints: TypeAlias = NDArray[np.int64]
Edges: TypeAlias = tuple[float, ...]
StepNumber: TypeAlias = tuple[Floats, Floats, Floats]
"""A number's value before, at and after each step; nan for text and before first steps."""

N = TypeVar("N", bound=np.generic)

BINS: Final = 12  # maximum number of intervals of a number
MAX_OUTPUT_VALUES: Final = 32  # maximum number of different numbers in an output; more are grouped
OUTPUT_CELLS: Final = 8  # number of such groups, with equally many steps in each

MOST_STEPS: Final = 20_000  # maximum number of steps used; more hardly improve edges
STEPS_OF_NUMBERS: Final = 40_000  # number of steps used, times the number of numbers
LEAST_STEPS: Final = 5_000  # minimum number of steps used, if there are that many
COARSE: Final = 32  # number of cells with equally many values between which edges are tried first
FINE: Final = 8  # number of cells within a cell, repeatedly until no value lies within
PRICE: Final = log2(COARSE * FINE)  # bits that an edge has to save: those of its position
PRICE_A_STEP: Final = 0.1
"""Further bits that an edge has to save at each step if it only predicts numbers.

Given enough steps, even the last digits of a number help to predict its next value, but each
interval adds an observation that machines have to see in each state.
"""


def auto_discretize(traces: TraceSet, outputs: Iterable[str] | None = None) -> Discretizer:
    """Return intervals whose edges help most to predict the next step.

    Starting with one interval for each number, the edge is added that saves most bits of the
    outputs' code, given the action, the observation, and one step of history, until no edge
    saves more than its position costs. Then edges are moved to their best positions, and
    superfluous ones removed.

    The numbers are in observations, or in actions if these are the inputs of a log. `outputs` are
    by default those of `infer`, and the ends of episodes.
    """
    options = Discretizer(of=ACTION if len(traces.observations) == 1 else OBSERVATION)
    content = numbers_in(traces, options.of)
    positions = [number.position for number in options.chosen(content)]
    max_steps = min(max(STEPS_OF_NUMBERS // len(positions), LEAST_STEPS), MOST_STEPS)
    sample = _sampled(distinct_traces(traces), max_steps)
    if outputs is None:
        outputs = default_outputs(sample.columns, observations=len(sample.observations))
        if sample.terminated.any():
            outputs = (*outputs, TERMINATED)
    search = _Search(Steps.of(sample, positions, tuple(outputs), max_steps, options.of))
    search.grow()
    search.refine()
    search.prune()
    search.shorten()
    intervals = dict(zip(positions, map(Intervals, search.edges), strict=True))
    return options.with_intervals(content, intervals, method=AUTO)


def _sampled(traces: TraceSet, n_steps: int) -> TraceSet:
    """Return traces with at least this number of steps, chosen and ordered by their content."""
    if traces.steps <= n_steps:
        return traces
    by_key = np.argsort(trace_hashes(traces))
    lengths = np.diff(traces.offsets)[by_key]
    n_traces = int(np.searchsorted(np.cumsum(lengths), n_steps)) + 1
    return traces.take(by_key[:n_traces])


# --- The predictive code --------------------------------------------------------------------------


class Column(NamedTuple):
    """A code for each step, and the number of possible codes."""

    codes: Ints
    size: int


@dataclass(frozen=True)
class Steps:
    """The columns of steps to encode, and the columns of their contexts.

    `actions` and `rest` (of the observations) are without the numbers; `outputs` are encoded, and
    the numbers after each step as well if `encodes_numbers`.
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
        """Return the first steps of traces, with the numbers at these positions in column `of`."""
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
    """Return a code for each combination of several codes."""
    codes, size = columns[0]
    for column in columns[1:]:
        pairs = codes * column.size + column.codes
        distinct, codes = distinct_numbers(pairs, size * column.size)
        size = len(distinct)
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
    return _before(values[now], is_first, math.nan), values[now], values[after]


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


class PredictiveCode:
    """Encodes the same steps under different edges; caches unchanged parts.

    Each output has the cheapest of a few contexts: the action with the observation, alone or
    with the observation before, the outputs before or the label; for outputs other than numbers
    also the action with one number alone.
    """

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        n_halves = 2 * len(steps) + max([BINS + 2, *(output.size for output in steps.outputs)])
        # The logarithm to base 2 of the Gamma function at 0 (unused), 1/2, 1, 3/2 and so on.
        halves = np.arange(1, n_halves + 1) / 2
        self._log_gamma = np.concatenate([[0.0], log_gamma(halves) / log(2)])
        # Edges of one number are varied at a time, and most parts stay as they are.
        keep = lru_cache(maxsize=2 * len(steps.numbers))
        self._cells_of = keep(self._cells)
        self._rest_of = keep(self._rest)
        self._bits_of_single = keep(self._single_bits)

    def bits(self, edges: Sequence[Edges], varied: int = 0) -> Bits:
        """Return the code's length; only the edges of `varied` differ from the last call's."""
        steps = self.steps
        cells = [self._cells_of(*row) for row in enumerate(edges)]
        rest, rest_before = self._rest_of(varied, (*edges[:varied], *edges[varied + 1 :]))
        observed = together(rest, cells[varied][1])
        contexts = [
            observed,
            together(observed, rest_before, cells[varied][0]),
            together(observed, steps.previous_outputs),
        ]
        if steps.labels.size > 1:
            contexts.append(together(observed, steps.labels))
        single_bits = [self._bits_of_single(*row) for row in enumerate(edges)]
        numbers = [after for _, _, after in cells] if steps.encodes_numbers else []
        min_bits = self._min_bits([*steps.outputs, *numbers], contexts)
        bits_of_numbers = zip(min_bits[len(steps.outputs) :], numbers, strict=True)
        return Bits(
            sum(map(min, zip(min_bits, *single_bits, strict=False))),
            sum((bits - _frequency_bits(number) for bits, number in bits_of_numbers), 0.0),
        )

    def _cells(self, number: int, edges: Edges) -> tuple[Column, ...]:
        """Return the intervals of a number before, at and after each step."""
        return tuple(_cell_codes(values, edges) for values in self.steps.numbers[number])

    def _rest(self, varied: int, edges: tuple[Edges, ...]) -> tuple[Column, Column]:
        """Return the action and observation without one number, and the latter before the step.

        `edges` are those of the other numbers.
        """
        steps = self.steps
        numbers = (number for number in range(len(steps.numbers)) if number != varied)
        cells = [self._cells_of(*row) for row in zip(numbers, edges, strict=True)]
        rest = together(steps.actions, steps.rest, *(now for _, now, _ in cells))
        constant = Column(np.zeros(len(steps), np.int64), 1)
        return rest, together(constant, *(before for before, _, _ in cells))

    def _single_bits(self, number: int, edges: Edges) -> list[float]:
        """Return the bits of each output by the action and one number, or the outputs before."""
        observed = together(self.steps.actions, self._cells_of(number, edges)[1])
        contexts = [observed, together(observed, self.steps.previous_outputs)]
        return self._min_bits(self.steps.outputs, contexts)

    def _min_bits(self, outputs: Iterable[Column], contexts: Iterable[Column]) -> list[float]:
        """Return the bits of each output in its cheapest context.

        Each context uses the estimator of Krichevsky and Trofimov: counts of the outputs so far,
        plus one half. The cost of learning a context is thus included.
        """
        log_gamma_of = self._log_gamma
        counted = [(context.codes, _counts(context.codes)) for context in contexts]

        def bits(output: Column, codes: Ints, counts: Ints) -> float:
            pairs = _counts(codes * output.size + output.codes)
            learned = log_gamma_of[2 * counts + output.size] - log_gamma_of[output.size]
            predicted = log_gamma_of[2 * pairs + 1] - log_gamma_of[1]
            return float(learned.sum() - predicted.sum())

        return [
            min(bits(output, *context) for context in counted) if output.size > 1 else 0.0
            for output in outputs
        ]


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


# --- The search -----------------------------------------------------------------------------------


def cuts(values: Floats, most: int) -> Floats:
    """Return at most this number of edges, with about equally many values between any two."""
    distinct, counts = np.unique(values, return_counts=True)
    midpoints: Floats = (distinct[:-1] + distinct[1:]) / 2
    if len(midpoints) <= most:
        return midpoints
    n_below = np.cumsum(counts)[:-1]
    n_wanted = len(values) * np.arange(1, most + 1) / (most + 1)
    nearest = np.searchsorted(n_below, n_wanted).clip(0, len(n_below) - 1)
    return np.asarray(midpoints[np.unique(nearest)])


class _Search:
    """A search for the edges of each number that make the predictive code short."""

    def __init__(self, steps: Steps) -> None:
        self.code = PredictiveCode(steps)
        self.edges: list[Edges] = [()] * len(steps.numbers)
        self.length = self.code.bits(self.edges)
        self.values = [now[~np.isnan(now)] for _, now, _ in steps.numbers]
        self.cuts = [cuts(values, COARSE - 1).tolist() for values in self.values]

    def grow(self) -> None:
        """Add the edge with the largest gain as long as one is worth its price."""
        gains = {
            (number, edge): math.inf for number, edges in enumerate(self.cuts) for edge in edges
        }
        while (best := self._best(gains)) is not None:
            del gains[best]
            self._put(best[0], _with(self.edges[best[0]], best[1]))

    def _best(self, gains: dict[tuple[int, float], float]) -> tuple[int, float] | None:
        """Return the edge with the largest gain; None if none is worth its price.

        The gain of an edge seldom rises when others are added, so edges are evaluated in the
        order of their last gains, until these are below the best present gain.
        """
        best, best_gain = None, PRICE
        for candidate in sorted(gains, key=lambda candidate: -gains[candidate]):
            number, edge = candidate
            if len(self.edges[number]) + 1 >= BINS:
                continue
            if best is not None and gains[candidate] <= best_gain:
                break
            gains[candidate] = self._gain(number, _with(self.edges[number], edge))
            if gains[candidate] > best_gain:
                best, best_gain = candidate, gains[candidate]
        return best

    def prune(self) -> None:
        """Remove the edge with the smallest gain as long as one is not worth its price."""
        while losses := {
            (number, edge): -self._gain(number, _without(edges, edge))
            for number, edges in enumerate(self.edges)
            for edge in edges
        }:
            number, edge = least = min(losses, key=losses.__getitem__)
            if losses[least] > PRICE:
                return
            self._put(number, _without(self.edges[number], edge))

    def refine(self) -> None:
        """Move each edge to its best position between its neighbors."""
        for number, edges in enumerate(self.edges):
            for edge in edges:
                self._refine(number, edge)

    def _refine(self, number: int, edge: float) -> None:
        values, rest = self.values[number], _without(self.edges[number], edge)
        low, high = _neighbors(edge, [-math.inf, *self.cuts[number], *rest, math.inf])
        while len(finer := cuts(values[(values >= low) & (values < high)], FINE - 1)):
            bits = [self._bits(number, _with(rest, position)).total for position in finer.tolist()]
            best = int(np.argmin(bits))
            if bits[best] >= self.length.total - 1:
                return
            self._put(number, _with(rest, float(finer[best])))
            low, high = _neighbors(float(finer[best]), [low, *finer.tolist(), high])

    def shorten(self) -> None:
        """Round each edge to as few decimals as cost at most a bit."""
        for number, edges in enumerate(self.edges):
            for edge in edges:
                rest = _without(self.edges[number], edge)
                for shorter in _roundings(edge, self.values[number]):
                    if shorter not in rest and (
                        self._bits(number, _with(rest, shorter)).total <= self.length.total + 1
                    ):
                        self._put(number, _with(rest, shorter))
                        break

    def _gain(self, number: int, edges: Edges) -> float:
        """Return the bits saved by changing a number's edges, less the price of added ones."""
        bits = self._bits(number, edges)
        n_added = len(edges) - len(self.edges[number])
        price = n_added * PRICE_A_STEP * len(self.code.steps)
        gains = self.length.outputs - bits.outputs, self.length.total - bits.total - price
        return max(gains) if n_added > 0 else min(gains)

    def _bits(self, number: int, edges: Edges) -> Bits:
        return self.code.bits([*self.edges[:number], edges, *self.edges[number + 1 :]], number)

    def _put(self, number: int, edges: Edges) -> None:
        self.length = self._bits(number, edges)
        self.edges[number] = edges


def _roundings(edge: float, values: Floats) -> Iterator[float]:
    """Yield an edge rounded to more and more decimals, to the nearest and down."""
    first = -magnitude(float(values.max() - values.min()))
    for decimals in range(first + 1, first + 17):
        for shorter in shorter_numbers(np.array([edge]), decimals):
            yield float(shorter[0])


def _with(edges: Edges, edge: float) -> Edges:
    return tuple(sorted((*edges, edge)))


def _without(edges: Edges, removed: float) -> Edges:
    return tuple(edge for edge in edges if edge != removed)


def _neighbors(edge: float, positions: Sequence[float]) -> tuple[float, float]:
    """Return the nearest positions below and above an edge."""
    return max(x for x in positions if x < edge), min(x for x in positions if x > edge)
