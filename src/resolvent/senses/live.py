"""Moved."""

from resolvent.rl.env import LiveSenses  # noqa: F401
