"""Moved."""

from resolvent.traces.io.formats import as_trace_set, as_traces  # noqa: F401
