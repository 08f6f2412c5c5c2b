"""Moved."""

from resolvent.inference.fit import (  # noqa: F401
    Found,
    MachineStatistics,
    MergeEvent,
    MergeLog,
    Recorded,
    Refinement,
    Standing,
)
from resolvent.inference.result import InferenceResult, machines_in  # noqa: F401
from resolvent.inference.summary import cut_short  # noqa: F401
