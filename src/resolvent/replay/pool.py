"""Moved."""

from resolvent.replay.scan import Pool  # noqa: F401
