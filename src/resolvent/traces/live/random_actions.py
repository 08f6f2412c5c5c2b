"""Moved."""

from resolvent.rl.rollout import random_actions  # noqa: F401
