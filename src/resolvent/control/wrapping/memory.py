"""Moved."""

from resolvent.rl.tracker import Memory  # noqa: F401
