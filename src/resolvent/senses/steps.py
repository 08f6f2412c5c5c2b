"""Traces → what there is to tell of their steps, and what to tell it from, in columns."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from resolvent.senses.intervals import Intervals
from resolvent.senses.parts import coded, parts_of
from resolvent.senses.readings import Place, values_at
from resolvent.traces.schema import ACTION, OBSERVATION
from resolvent.traces.symbols import Symbol
from resolvent.traces.trace_set import StepColumn, TraceSet

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
N = TypeVar("N", bound=np.generic)

FEW = 32
"""Up to so many values a column holds symbols; more numbers than that are put into cells."""

CELLS = 8


class Codes(NamedTuple):
    """A code for each step, and how many different ones there may be."""

    of_step: Ints
    kinds: int


@dataclass(frozen=True)
class Number:
    """A number that is read: its value before, at and after each step, or not a number.

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
        actions: What was done, without these numbers.
        rest: What was seen, without these numbers.
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

    def __len__(self) -> int:
        return len(self.actions.of_step)


def together(*parts: Codes) -> Codes:
    """Return one code for what several say together.

    >>> together(Codes(np.array([0, 1, 0]), 2), Codes(np.array([4, 0, 4]), 5))
    Codes(of_step=array([0, 1, 0]), kinds=2)
    """
    codes, kinds = parts[0]
    for further, many in parts[1:]:
        pairs = codes * many + further
        if kinds * many > 8 * len(pairs):
            kept, codes = np.unique(pairs, return_inverse=True)
            kinds = len(kept)
        else:  # a table of all pairs is faster than sorting
            occurs = np.zeros(kinds * many, bool)
            occurs[pairs] = True
            codes, kinds = (np.cumsum(occurs) - 1)[pairs], int(occurs.sum())
    return Codes(codes, kinds)


def steps_of(
    traces: TraceSet,
    places: Sequence[Place],
    outputs: Sequence[str],
    most: int,
    of: str = OBSERVATION,
) -> Steps:
    """Return the steps of traces, at most so many, with the numbers at these places.

    `outputs` are what is to be told: columns of steps, `"observation"` and `"terminated"`.
    `of` says whether observations or actions have the numbers.
    """
    rows = min(traces.steps, most)
    first = np.zeros(traces.steps, bool)
    first[traces.offsets[:-1]] = True
    first = first[:rows]
    now = traces.at_step(traces.observation_codes)[:rows].astype(np.int64)
    after = traces.after_step(traces.observation_codes)[:rows].astype(np.int64)
    done = traces.action_codes[:rows].astype(np.int64)
    without = parts_of({place: Intervals(()) for place in places}, {})
    seen_rest, of_seen = coded(without if of == OBSERVATION else None, traces.observations)
    done_rest, of_done = coded(without if of == ACTION else None, traces.actions)
    told = [_symbols(traces.column(name), rows) for name in outputs if name != OBSERVATION]
    all_told = together(Codes(np.zeros(rows, np.int64), 1), *told)
    if OBSERVATION in outputs and len(seen_rest) > 1:
        told.append(Codes(of_seen[after], len(seen_rest)))
    at = (now, after) if of == OBSERVATION else (done, np.roll(done, -1))
    return Steps(
        tuple(_number(traces.values[of], place, *at, first) for place in places),
        Codes(of_done[done], len(done_rest)),
        Codes(of_seen[now], len(seen_rest)),
        Codes(traces.at_step(traces.label_codes)[:rows].astype(np.int64), len(traces.labels)),
        Codes(_before(all_told.of_step, first, all_told.kinds), all_told.kinds + 1),
        tuple(told),
        foretold=OBSERVATION in outputs and of == OBSERVATION,
    )


def _number(
    symbols: Sequence[Symbol], place: Place, now: Ints, after: Ints, first: NDArray[np.bool_]
) -> Number:
    values = np.array(
        [math.nan if isinstance(one, str) else one for one in values_at(symbols, place)],
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
