"""Steps of traces and edges for their numbers → the bits it takes to tell what comes next.

What comes next is told from counts, given the action, what is seen, and one step of history.
Wide intervals are not cheap by saying little: a reading costs what its interval costs beyond
how often that interval occurs at all, so that foretelling nothing costs nothing, and
foretelling something costs less than that.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from resolvent.senses.intervals import Intervals
from resolvent.senses.parts import coded, parts_of
from resolvent.senses.readings import Place, values_at
from resolvent.traces.column_names import OBSERVATION
from resolvent.traces.symbols import Symbol
from resolvent.traces.trace_set import StepColumn, TraceSet
from resolvent.traces.vocabulary import distinct_numbers

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Edges: TypeAlias = tuple[float, ...]
N = TypeVar("N", bound=np.generic)

FEW = 32
"""Up to so many values a column holds symbols; more numbers than that are put into cells."""

CELLS = 8

MOST_BINS = 256
"""No number is ever put into more intervals than this."""


class Codes(NamedTuple):
    """A code for each step, and how many different ones there may be."""

    of_step: Ints
    kinds: int


class Bits(NamedTuple):
    """What it takes to tell the outputs of all steps, and the numbers after them."""

    outputs: float
    readings: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.outputs + self.readings


@dataclass(frozen=True)
class Number:
    """A number of the observations: its value before, at and after each step, or not a number.

    There is none where text stands in its place, and before the first step of a trace.
    """

    place: Place
    before: Floats
    now: Floats
    after: Floats


@dataclass(frozen=True)
class Steps:
    """What there is to tell of steps, and to tell it from.

    Attributes:
        numbers: The numbers that edges are sought for.
        actions: What was done.
        rest: What else was seen.
        labels: The label of what was seen.
        told_before: All outputs at the step before.
        outputs: What is to be told beside numbers.
        foretold: Whether the numbers after a step are to be told, too.
    """

    numbers: tuple[Number, ...]
    actions: Codes
    rest: Codes
    labels: Codes
    told_before: Codes
    outputs: tuple[Codes, ...]
    foretold: bool

    def bits(self, edges: Sequence[Edges]) -> Bits:
        """Return how many bits it takes to tell what comes next, with these edges.

        Each output is told from whichever of a few contexts makes it cheapest.
        """
        before, now, after = zip(*map(_cells, self.numbers, edges), strict=True)
        seen = _together(self.actions, self.rest, *now)
        whole = [seen, _together(seen, *before), _together(seen, self.told_before)]
        if self.labels.kinds > 1:
            whole.append(_together(seen, self.labels))
        own = [_together(self.actions, one) for one in now]
        told = [_together(one, self.told_before) for one in own]
        outputs = sum(self._cheapest(one, [*whole, *own, *told]) for one in self.outputs)
        if not self.foretold:
            return Bits(outputs, 0.0)
        readings = sum(self._cheapest(one, whole) - _frequency_bits(one) for one in after)
        return Bits(outputs, readings)

    def _cheapest(self, output: Codes, contexts: Iterable[Codes]) -> float:
        return min(self._bits_given(output, one) for one in contexts)

    def _bits_given(self, output: Codes, context: Codes) -> float:
        """Return the bits of an output when each context counts what came in it so far.

        That is the estimator of Krichevsky and Trofimov: half a count for each value
        before any is seen. What it costs to learn a context is thus paid for.
        """
        pairs = _counts(context.of_step * output.kinds + output.of_step)
        contexts = _counts(context.of_step)
        gamma = self._log_gamma_of_halves
        learned = gamma[2 * contexts + output.kinds] - gamma[output.kinds]
        known = gamma[2 * pairs + 1] - gamma[1]
        return float(learned.sum() - known.sum())

    @cached_property
    def _log_gamma_of_halves(self) -> Floats:
        """The logarithm to base 2 of the Gamma function at 1/2, 1, 3/2 and so on."""
        most = max([MOST_BINS + 2, *(one.kinds for one in self.outputs)])
        most += 2 * len(self.actions.of_step)
        halves = (math.lgamma(half / 2) / math.log(2) for half in range(1, most + 1))
        return np.fromiter(chain([0.0], halves), np.float64)


def _cells(number: Number, edges: Edges) -> tuple[Codes, Codes, Codes]:
    """Return the intervals that a number lies in before, at and after each step."""

    def codes(values: Floats) -> Codes:
        places = np.searchsorted(np.array(edges), values, side="right")
        places[np.isnan(values)] = len(edges) + 1
        return Codes(places, len(edges) + 2)

    return codes(number.before), codes(number.now), codes(number.after)


def _together(*parts: Codes) -> Codes:
    """Return one code for what several say together."""
    codes, count = parts[0]
    for further, many in parts[1:]:
        kept, codes = distinct_numbers(codes * many + further, count * many)
        count = len(kept)
    return Codes(codes, count)


def _counts(numbers: Ints) -> Ints:
    """Return how often each number occurs that occurs at all."""
    if numbers.max() < 8 * len(numbers):
        counts = np.bincount(numbers)
        return counts[counts > 0]
    return np.unique(numbers, return_counts=True)[1]


def _frequency_bits(output: Codes) -> float:
    """Return the bits of telling each value by how often it occurs."""
    counts = _counts(output.of_step)
    return float((counts * np.log2(len(output.of_step) / counts)).sum())


def steps_of(traces: TraceSet, places: Sequence[Place], outputs: Sequence[str], most: int) -> Steps:
    """Return the steps of traces, at most so many, with the numbers at these places.

    `outputs` are what is to be told: columns of steps, `"observation"` and `"terminated"`.
    """
    rows = min(traces.steps, most)
    first = np.zeros(traces.steps, bool)
    first[traces.offsets[:-1]] = True
    first = first[:rows]
    now = traces.at_step(traces.observation_codes)[:rows].astype(np.int64)
    after = traces.after_step(traces.observation_codes)[:rows].astype(np.int64)
    without = parts_of({place: Intervals(()) for place in places}, {})
    rest, of_observation = coded(without, traces.observations)
    told = [_symbols(traces.column(name), rows) for name in outputs if name != OBSERVATION]
    together = _together(Codes(np.zeros(rows, np.int64), 1), *told)
    foretold = OBSERVATION in outputs
    if foretold and len(rest) > 1:
        told.append(Codes(of_observation[after], len(rest)))
    return Steps(
        tuple(_number(traces.observations, place, now, after, first) for place in places),
        Codes(traces.action_codes[:rows].astype(np.int64), len(traces.actions)),
        Codes(of_observation[now], len(rest)),
        Codes(traces.at_step(traces.label_codes)[:rows].astype(np.int64), len(traces.labels)),
        Codes(_before(together.of_step, first, together.kinds), together.kinds + 1),
        tuple(told),
        foretold,
    )


def _number(
    observations: Sequence[Symbol], place: Place, now: Ints, after: Ints, first: NDArray[np.bool_]
) -> Number:
    values = np.array(
        [math.nan if isinstance(one, str) else one for one in values_at(observations, place)],
        np.float64,
    )
    return Number(place, _before(values[now], first, math.nan), values[now], values[after])


def _symbols(column: StepColumn, rows: int) -> Codes:
    """Return a column as symbols: numbers of many different values are put into cells."""
    values, codes = column.values, column.codes[:rows].astype(np.int64)
    if len(values) <= FEW or not all(type(value) in (int, float) for value in values):
        return Codes(codes, len(values))
    numbers = np.array(values, np.float64)[codes]
    edges = np.quantile(numbers, np.arange(1, CELLS) / CELLS)
    return Codes(np.searchsorted(edges, numbers, side="right"), CELLS)


def _before(values: NDArray[N], first: NDArray[np.bool_], none: float) -> NDArray[N]:
    """Return for each step what there was at the step before, or what stands for none."""
    shifted = np.roll(values, 1)
    shifted[first] = none
    return shifted
