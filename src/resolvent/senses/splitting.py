"""Traces whose observations are numbers → edges where they help to tell what comes next."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from resolvent._util.math import log2
from resolvent._util.validation import shown
from resolvent.errors import OptionError
from resolvent.senses.discretise import AUTO, Discretise
from resolvent.senses.edges import Floats, magnitude, shorter_numbers
from resolvent.senses.foretelling import MOST_BINS, Bits, Edges, Foretelling
from resolvent.senses.intervals import Intervals
from resolvent.senses.readings import different_traces, readings
from resolvent.senses.steps import Steps, steps_of
from resolvent.traces.sampling import trace_hashes
from resolvent.traces.schema import ACTION, OBSERVATION, TERMINATED, default_outputs
from resolvent.traces.trace_set import TraceSet

MOST_STEPS = 20_000
"""How many steps are looked at: more make edges hardly better, and the search slower."""

STEPS_OF_NUMBERS = 40_000
"""How many steps are looked at, divided by the numbers that edges are sought for."""

LEAST_STEPS = 5_000
"""How many steps are looked at, if there are so many, whatever the numbers."""

COARSE = 32
"""Edges are sought first between so many cells of equally many readings,"""

FINE = 8
"""and then between so many within a cell, again and again until no reading lies within."""

PRICE = log2(COARSE * FINE)
"""What an edge has to save, in bits: as many as it takes to say where it is."""

PRICE_A_STEP = 0.1
"""What an edge has to save at each step besides, in bits, if it only tells of readings.

Nearly any number tells the next of its digits from its last ones, and with more steps ever more
of them; while each interval is another observation that machines have to see in each state.
"""


def auto_discretise(
    traces: TraceSet,
    outputs: Iterable[str] | None = None,
    *,
    bins: int = 12,
    columns: Iterable[Any] | None = None,
    ints: bool = False,
    of: str | None = None,
) -> Discretise:
    """Return intervals whose edges lie where they help most to tell what comes next.

    Starting from one interval for each number, the edge is added that saves most of the bits
    it takes to tell the outputs from counts, given the action, what is seen, and one step
    of history; until no edge saves more than it costs to say where it is. Then each is moved to
    where it is best, and those that are superfluous by then are taken away.

    Args:
        traces: What to learn from; 5,000 to 20,000 steps of them are looked at.
        outputs: What is to be told, as `infer` takes it; by default what it predicts by
            default, and where episodes end.
        bins: The most intervals a number may have.
        columns: Which numbers to put into intervals, as in `Discretise`.
        ints: Whether ints are readings, too.
        of: Whether `"observation"` or `"action"` has the numbers, as in `Discretise`; by default
            observations, and of a log, where nothing is seen, its inputs.

    A heater is on from below 18 degrees until 22:

    >>> from resolvent.traces import Trace
    >>> heat, on, seen, heats = 20.0, False, [20.0], []
    >>> for minute in range(500):
    ...     on = heat < 18 or (on and heat < 22)
    ...     heats.append(on)
    ...     heat += (0.37 if on else -0.29) + 0.1 * math.sin(minute)
    ...     seen.append(heat)
    >>> log = TraceSet([Trace(seen, [None] * 501, ["wait"] * 500, columns={"heats": heats})])
    >>> print(auto_discretise(log, outputs=["heats"]))
    the observation: below 18, 18…22, above 22
    """
    if type(bins) is not int or not 2 <= bins <= MOST_BINS:
        raise OptionError(f"bins={shown(bins)}: give a whole number from 2 to {MOST_BINS}")
    if of is None:
        of = ACTION if len(traces.observations) == 1 else OBSERVATION
    asked = Discretise(columns=columns, ints=ints, of=of)  # type: ignore[arg-type]
    found = readings(traces, of)
    numbers = asked.chosen(found)
    most = min(max(STEPS_OF_NUMBERS // len(numbers), LEAST_STEPS), MOST_STEPS)
    looked_at = _some(different_traces(traces), most)
    wanted = _outputs(looked_at, outputs)
    steps = steps_of(looked_at, [one.place for one in numbers], wanted, most, of)
    search = _Search(steps, bins)
    search.grow()
    search.refine()
    search.prune()
    search.shorten()
    intervals = {
        one.place: Intervals(edges) for one, edges in zip(numbers, search.edges, strict=True)
    }
    return asked.with_intervals(found, intervals, method=AUTO)


def _some(traces: TraceSet, steps: int) -> TraceSet:
    """Return traces of so many steps or a few more, chosen and ordered by what they hold."""
    if traces.steps <= steps:
        return traces
    by_key = np.argsort(trace_hashes(traces))
    enough = int(np.searchsorted(np.cumsum(np.diff(traces.offsets)[by_key]), steps)) + 1
    return traces.take(by_key[:enough])


def _outputs(traces: TraceSet, outputs: Iterable[str] | None) -> tuple[str, ...]:
    if outputs is not None:
        return (outputs,) if isinstance(outputs, str) else tuple(outputs)
    usual = default_outputs(traces.columns, observations=len(traces.observations))
    return (*usual, TERMINATED) if traces.terminated.any() else usual


def cuts(values: Floats, most: int) -> Floats:
    """Return up to so many edges between numbers, with about equally many between any two.

    >>> cuts(np.array([0.0, 1, 1, 1, 2, 4]), 2).tolist(), cuts(np.array([5.0, 5]), 2).tolist()
    ([1.5], [])
    """
    different, counts = np.unique(values, return_counts=True)
    between: Floats = (different[:-1] + different[1:]) / 2
    if len(between) <= most:
        return between
    below = np.cumsum(counts)[:-1]
    wanted = len(values) * np.arange(1, most + 1) / (most + 1)
    chosen: Floats = between[np.unique(np.searchsorted(below, wanted).clip(0, len(below) - 1))]
    return chosen


class _Search:
    """The edges of each number, while they are sought."""

    def __init__(self, steps: Steps, bins: int) -> None:
        self.foretelling, self.bins = Foretelling(steps), bins
        self.edges: list[Edges] = [()] * len(steps.numbers)
        self.bits = self.foretelling.bits(self.edges)
        self.values = [one.now[~np.isnan(one.now)] for one in steps.numbers]
        self.cuts = [cuts(values, COARSE - 1).tolist() for values in self.values]

    def grow(self) -> None:
        """Add the edge that gains most, for as long as one is worth its price."""
        gains = {
            (number, edge): math.inf for number, of_one in enumerate(self.cuts) for edge in of_one
        }
        while (best := self._best(gains)) is not None:
            del gains[best]
            self._put(best[0], _with(self.edges[best[0]], best[1]))

    def _best(self, gains: dict[tuple[int, float], float]) -> tuple[int, float] | None:
        """Return the edge that gains most, None if none is worth its price.

        An edge seldom gains more after others were added: those that gained much when they
        were last tried come first, and nobody tries what gained less than the best does now.
        Before giving up, all have been tried.
        """
        best, most = None, PRICE
        for one in sorted(gains, key=lambda one: -gains[one]):
            number, edge = one
            if len(self.edges[number]) + 1 >= self.bins:
                continue
            if best is not None and gains[one] <= most:
                break
            gains[one] = self._worth(number, _with(self.edges[number], edge))
            if gains[one] > most:
                best, most = one, gains[one]
        return best

    def prune(self) -> None:
        """Take away the edge that gains least, for as long as one is not worth its price."""
        while True:
            losses = {
                (number, edge): -self._worth(number, _without(edges, edge))
                for number, edges in enumerate(self.edges)
                for edge in edges
            }
            number, edge = least = min(losses, key=losses.__getitem__, default=(0, 0.0))
            if not losses or losses[least] > PRICE:
                return
            self._put(number, _without(self.edges[number], edge))

    def refine(self) -> None:
        """Move each edge to where it gains most between the nearest places for others."""
        for number, edges in enumerate(self.edges):
            for edge in edges:
                self._refine(number, edge)

    def _refine(self, number: int, edge: float) -> None:
        values, others = self.values[number], _without(self.edges[number], edge)
        low, high = _around(edge, [-math.inf, *self.cuts[number], *others, math.inf])
        while len(places := cuts(values[(values >= low) & (values < high)], FINE - 1)):
            bits = [self._bits(number, _with(others, place)).total for place in places.tolist()]
            best = int(np.argmin(bits))
            if bits[best] >= self.bits.total - 1:
                return
            self._put(number, _with(others, float(places[best])))
            low, high = _around(float(places[best]), [low, *places.tolist(), high])

    def shorten(self) -> None:
        """Round each edge to as few decimals as cost at most a bit."""
        for number, edges in enumerate(self.edges):
            for edge in edges:
                others = _without(self.edges[number], edge)
                for shorter in _roundings(edge, self.values[number]):
                    if shorter not in others and (
                        self._bits(number, _with(others, shorter)).total <= self.bits.total + 1
                    ):
                        self._put(number, _with(others, shorter))
                        break

    def _worth(self, number: int, edges: Edges) -> float:
        """Return the bits that count of those that other edges for a number would save.

        With an edge less, these are negative.
        """
        bits = self._bits(number, edges)
        added = len(edges) - len(self.edges[number])
        price = added * PRICE_A_STEP * len(self.foretelling.steps)
        saved = self.bits.outputs - bits.outputs, self.bits.total - bits.total - price
        return max(saved) if added > 0 else min(saved)

    def _bits(self, number: int, edges: Edges) -> Bits:
        tried = [*self.edges[:number], edges, *self.edges[number + 1 :]]
        return self.foretelling.bits(tried, number)

    def _put(self, number: int, edges: Edges) -> None:
        self.bits = self._bits(number, edges)
        self.edges[number] = edges


def _roundings(edge: float, values: Floats) -> Iterator[float]:
    """Yield an edge rounded to more and more decimals, to the nearest and down.

    >>> list(_roundings(0.0872, np.array([0.0, 0.5])))[:3]
    [0.1, 0.0, 0.09]
    """
    first = -magnitude(float(values.max() - values.min()))
    for decimals in range(first + 1, first + 17):
        for shorter in shorter_numbers(np.array([edge]), decimals):
            yield float(shorter[0])


def _with(edges: Edges, edge: float) -> Edges:
    return tuple(sorted((*edges, edge)))


def _without(edges: Edges, edge: float) -> Edges:
    return tuple(one for one in edges if one != edge)


def _around(edge: float, places: Sequence[float]) -> tuple[float, float]:
    """Return the places next to an edge, below and above.

    >>> _around(3, [0, 2, 3, 7, 9])
    (2, 7)
    """
    return max(one for one in places if one < edge), min(one for one in places if one > edge)
