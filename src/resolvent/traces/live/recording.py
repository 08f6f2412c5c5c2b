"""Moved."""

from resolvent.rl.rollout import Recorder  # noqa: F401
