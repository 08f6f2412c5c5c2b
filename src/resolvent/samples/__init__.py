"""Samples: `TraceSet` → `SampleSet`, what a machine is asked and must answer."""

from resolvent.samples.histories import Histories
from resolvent.samples.sample_set import (
    ObservationColumn,
    SampleSet,
    output_samples,
    rounded,
)
from resolvent.samples.timing import NONE, LabelReader, LabelTiming, labels_read

__all__ = [
    "NONE",
    "Histories",
    "LabelReader",
    "LabelTiming",
    "ObservationColumn",
    "SampleSet",
    "labels_read",
    "output_samples",
    "rounded",
]
