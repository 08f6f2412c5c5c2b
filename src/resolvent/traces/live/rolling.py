"""Moved."""

from resolvent.rl.env import time_limit  # noqa: F401
