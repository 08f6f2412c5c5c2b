"""Moved."""

from resolvent.traces.digest import content_keys, scrambled  # noqa: F401
from resolvent.traces.sampling import (  # noqa: F401
    beginnings,
    choose_traces,
    core_columns,
    trace_keys,
)
