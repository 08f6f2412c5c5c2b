"""Moved."""

from resolvent.planning.goals import Came, StepsSeen, steps_seen  # noqa: F401
