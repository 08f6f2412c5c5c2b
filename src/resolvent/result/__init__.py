"""Result: what `infer` gives back, what it is made of, and what is said of it. Plain data."""

from resolvent.result.found import (
    Found,
    MachineStatistics,
    MergeEvent,
    MergeLog,
    Recorded,
    Refinement,
    Standing,
)
from resolvent.result.in_words import cut_short
from resolvent.result.inference_result import InferenceResult, machines_in

__all__ = [
    "Found",
    "InferenceResult",
    "MachineStatistics",
    "MergeEvent",
    "MergeLog",
    "Recorded",
    "Refinement",
    "Standing",
    "cut_short",
    "machines_in",
]
