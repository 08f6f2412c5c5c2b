"""Moved."""

from resolvent.traces.io.lines import Line, compression_of, unchanged  # noqa: F401
