"""Automatic discretization: edges at the values that help most to predict the next step.

Input: traces whose observations, or actions, are numbers. Output: a fitted `Discretizer`.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from resolvent._util.math import log2
from resolvent.preprocess.discretize import AUTO, Discretizer, distinct_traces, numbers_in
from resolvent.preprocess.intervals import Floats, Intervals, magnitude, shorter_numbers
from resolvent.preprocess.predictive_code import BINS, Bits, Edges, PredictiveCode, Steps
from resolvent.traces.digest import trace_hashes
from resolvent.traces.schema import ACTION, OBSERVATION, TERMINATED, default_outputs
from resolvent.traces.trace_set import TraceSet

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

    Args:
        traces: The traces to learn from; 5,000 to 20,000 steps of them are used. The numbers are
            in observations, or in actions if these are the inputs of a log.
        outputs: The outputs to predict, as in `infer`; by default those of `infer`, and the ends
            of episodes.

    A heater is on from below 18 degrees until 22:

    >>> from resolvent.traces import Trace
    >>> heat, on, seen, heats = 20.0, False, [20.0], []
    >>> for minute in range(500):
    ...     on = heat < 18 or (on and heat < 22)
    ...     heats.append(on)
    ...     heat += (0.37 if on else -0.29) + 0.1 * math.sin(minute)
    ...     seen.append(heat)
    >>> log = TraceSet([Trace(seen, [None] * 501, ["wait"] * 500, columns={"heats": heats})])
    >>> print(auto_discretize(log, outputs=["heats"]))
    the observation: below 18, 18…22, above 22
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


def cuts(values: Floats, most: int) -> Floats:
    """Return at most this number of edges, with about equally many values between any two.

    >>> cuts(np.array([0.0, 1, 1, 1, 2, 4]), 2).tolist(), cuts(np.array([5.0, 5]), 2).tolist()
    ([1.5], [])
    """
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
        self.values = [number.now[~np.isnan(number.now)] for number in steps.numbers]
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


def _without(edges: Edges, removed: float) -> Edges:
    return tuple(edge for edge in edges if edge != removed)


def _neighbors(edge: float, positions: Sequence[float]) -> tuple[float, float]:
    """Return the nearest positions below and above an edge."""
    return max(x for x in positions if x < edge), min(x for x in positions if x > edge)
