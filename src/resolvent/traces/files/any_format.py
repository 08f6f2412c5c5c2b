"""Moved."""

from resolvent.traces.io.formats import FORMATS, read_traces, write_traces, written_format  # noqa: F401
