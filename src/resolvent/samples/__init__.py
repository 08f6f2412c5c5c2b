"""Samples: `TraceSet` → `SampleSet`, what a machine is asked and must answer."""

from resolvent.samples.sample_set import (
    NONE,
    ObservationColumn,
    SampleSet,
    reward_samples,
    rounded_rewards,
    transition_samples,
)
from resolvent.samples.timing import LabelReader, LabelTiming, labels_read

__all__ = [
    "NONE",
    "LabelReader",
    "LabelTiming",
    "ObservationColumn",
    "SampleSet",
    "labels_read",
    "reward_samples",
    "rounded_rewards",
    "transition_samples",
]
