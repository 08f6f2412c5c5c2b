"""Moved."""

from resolvent.traces.io.arrow import distinct  # noqa: F401
