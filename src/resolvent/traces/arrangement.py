"""Moved."""

from resolvent.traces.source import Arrangement  # noqa: F401
