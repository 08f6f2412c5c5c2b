"""Samples: `TraceSet` → `SampleSet`, what a machine is asked and must answer."""

from resolvent.samples.histories import Histories
from resolvent.samples.sample_set import (
    ObservationColumn,
    SampleSet,
    reward_samples,
    rounded_rewards,
    transition_samples,
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
    "reward_samples",
    "rounded_rewards",
    "transition_samples",
]
