"""Moved."""

from resolvent.traces.io.lines import Line  # noqa: F401
