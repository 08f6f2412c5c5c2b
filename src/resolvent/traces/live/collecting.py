"""Moved."""

from resolvent.rl.collect import collect  # noqa: F401
