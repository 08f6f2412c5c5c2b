"""Moved."""

from resolvent.traces.io.lines import MISSING, header_of  # noqa: F401
