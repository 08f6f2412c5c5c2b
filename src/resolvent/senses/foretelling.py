"""Steps of traces and edges for their numbers → the bits it takes to tell what comes next.

What comes next is told from counts, given the action, what is seen, and one step of history.
Wide intervals are not cheap by saying little: a reading costs what its interval costs beyond
how often that interval occurs at all, so that foretelling nothing costs nothing, and
foretelling something costs less than that.
"""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np

from resolvent._util.math import log, log2, log_gamma
from resolvent.senses.steps import Codes, Floats, Ints, Number, Steps, together

Edges: TypeAlias = tuple[float, ...]

MOST_BINS = 256
"""No number is ever put into more intervals than this."""


class Bits(NamedTuple):
    """What it takes to tell the outputs of all steps, and the numbers after them."""

    outputs: float
    readings: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.outputs + self.readings


class _Cells(NamedTuple):
    """The intervals that a number lies in before, at and after each step."""

    before: Codes
    now: Codes
    after: Codes


class _Context(NamedTuple):
    """What steps are told apart by, and how many are alike in it."""

    codes: Codes
    counts: Ints


class Foretelling:
    """Tells steps with ever other edges; what stays the same is worked out once.

    Each output is told from whichever of a few contexts makes it cheapest: the action with
    all that is seen, and this with what was seen before, with the outputs before or with
    the label; for outputs that are no readings also with one number alone.
    """

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self._gamma = _log_gamma_of_halves(
            2 * len(steps) + max([MOST_BINS + 2, *(one.kinds for one in steps.outputs)])
        )
        # By number, with the edges they were worked out for.
        self._cells: dict[int, tuple[Edges, _Cells]] = {}
        self._alone: dict[int, tuple[Edges, list[float]]] = {}
        self._others: dict[int, tuple[Sequence[Edges], Codes, Codes]] = {}

    def bits(self, edges: Sequence[Edges], varied: int = 0) -> Bits:
        """Return how many bits it takes to tell what comes next, with these edges.

        `varied` is the number whose edges are the only ones that change often.
        """
        steps, cells = self.steps, [self._cells_of(*one) for one in enumerate(edges)]
        others, others_before = self._without(varied, edges, cells)
        seen = together(others, cells[varied].now)
        contexts = [
            seen,
            together(seen, others_before, cells[varied].before),
            together(seen, steps.told_before),
        ]
        if steps.labels.kinds > 1:
            contexts.append(together(seen, steps.labels))
        whole = [_context(one) for one in contexts]
        alone = [self._bits_alone(*one) for one in enumerate(edges)]
        outputs = sum(
            min([self._cheapest(output, whole), *(bits[place] for bits in alone)])
            for place, output in enumerate(steps.outputs)
        )
        if not steps.foretold:
            return Bits(outputs, 0.0)
        return Bits(
            outputs,
            sum(self._cheapest(one.after, whole) - _frequency_bits(one.after) for one in cells),
        )

    def _cells_of(self, number: int, edges: Edges) -> _Cells:
        kept = self._cells.get(number)
        if kept is None or kept[0] != edges:
            kept = self._cells[number] = edges, _cells(self.steps.numbers[number], edges)
        return kept[1]

    def _without(
        self, varied: int, edges: Sequence[Edges], cells: Sequence[_Cells]
    ) -> tuple[Codes, Codes]:
        """Return all that is seen but for one number, and what was seen of that before."""
        other_edges = [*edges[:varied], *edges[varied + 1 :]]
        kept = self._others.get(varied)
        if kept is None or kept[0] != other_edges:
            others = [*cells[:varied], *cells[varied + 1 :]]
            nothing = Codes(np.zeros(len(self.steps), np.int64), 1)
            now = together(self.steps.actions, self.steps.rest, *(one.now for one in others))
            before = together(nothing, *(one.before for one in others))
            kept = self._others[varied] = other_edges, now, before
        return kept[1:]

    def _bits_alone(self, number: int, edges: Edges) -> list[float]:
        """Return the bits of each output, told from one number with the outputs before or not."""
        kept = self._alone.get(number)
        if kept is None or kept[0] != edges:
            own = together(self.steps.actions, self._cells_of(number, edges).now)
            contexts = [_context(own), _context(together(own, self.steps.told_before))]
            bits = [self._cheapest(output, contexts) for output in self.steps.outputs]
            kept = self._alone[number] = edges, bits
        return kept[1]

    def _cheapest(self, output: Codes, contexts: Sequence[_Context]) -> float:
        return min(self._bits_given(output, one) for one in contexts)

    def _bits_given(self, output: Codes, context: _Context) -> float:
        """Return the bits of an output when each context counts what came in it so far.

        That is the estimator of Krichevsky and Trofimov: half a count for each value
        before any is seen. What it costs to learn a context is thus paid for.
        """
        if output.kinds == 1:
            return 0.0
        pairs = _counts(context.codes.of_step * output.kinds + output.of_step)
        learned = self._gamma[2 * context.counts + output.kinds] - self._gamma[output.kinds]
        known = self._gamma[2 * pairs + 1] - self._gamma[1]
        return float(learned.sum() - known.sum())


def _log_gamma_of_halves(most: int) -> Floats:
    """Return the logarithm to base 2 of the Gamma function at 1/2, 1, 3/2 and so on.

    >>> (_log_gamma_of_halves(8)[[2, 4, 6, 8]].round(9) + 0).tolist()  # of 1, 1, 2 and 6
    [0.0, 0.0, 1.0, 2.584962501]
    """
    halves = (log_gamma(half / 2) / log(2) for half in range(1, most + 1))
    return np.fromiter(chain([0.0], halves), np.float64)


def _cells(number: Number, edges: Edges) -> _Cells:
    def codes(values: Floats) -> Codes:
        places = np.searchsorted(np.array(edges), values, side="right")
        missing = np.isnan(values)
        places[missing] = len(edges) + 1
        return Codes(places, len(edges) + 1 + bool(missing.any()))

    return _Cells(codes(number.before), codes(number.now), codes(number.after))


def _context(codes: Codes) -> _Context:
    return _Context(codes, _counts(codes.of_step))


def _counts(numbers: Ints) -> Ints:
    """Return how often each number occurs that occurs at all."""
    if numbers.max() < 8 * len(numbers):
        counts = np.bincount(numbers)
        return counts[counts > 0]
    return np.unique(numbers, return_counts=True)[1]


def _frequency_bits(output: Codes) -> float:
    """Return the bits of telling each value by how often it occurs."""
    counts = _counts(output.of_step)
    return float((counts * log2(len(output.of_step) / counts)).sum())
