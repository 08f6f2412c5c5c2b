"""Contradictions: two rows of samples that no deterministic machine can explain together."""

from collections.abc import Callable
from typing import TypeAlias

from resolvent import _core
from resolvent.preprocess.reduction import remove_trivial
from resolvent.preprocess.samples import Histories, SampleSet
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces.trace_set import TraceSet

SampleBuilder: TypeAlias = Callable[[TraceSet, Histories], SampleSet]
"""Returns the samples for one machine, without supplement.

The supplement is a function of the label history, so it neither adds nor removes contradictions.
"""


class ContradictoryRows(Exception):  # noqa: N818
    """Two rows with the same label history and α-input, but different outputs.

    It is the first such pair: by label history in shortlex order, then by α-input, then by row.
    """

    def __init__(self, first: int, second: int) -> None:
        super().__init__(first, second)
        self.first = first
        self.second = second


def find_contradiction(samples: SampleSet) -> ContradictoryRows | None:
    """Return the first contradiction among the samples, or None if a machine can explain them."""
    rows = _core.find_contradiction(samples.histories.tree, samples.alpha, samples.output)
    return None if rows is None else ContradictoryRows(*rows)


def fitting_timing(
    traces: TraceSet, build_samples: SampleBuilder, timing: LabelTiming, trivial: tuple[int, ...]
) -> LabelTiming | None:
    """Return another label timing under which the traces do not contradict each other."""
    for candidate in LabelTiming:
        histories = remove_trivial(Histories.of(traces, candidate), trivial)
        if candidate is not timing and find_contradiction(build_samples(traces, histories)) is None:
            return candidate
    return None
