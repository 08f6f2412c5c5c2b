"""Moved."""

from resolvent.machines.counts import Answered, Spread, answered  # noqa: F401
