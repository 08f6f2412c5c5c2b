"""Moved."""

from resolvent.traces.vocabulary import CommonValues  # noqa: F401
