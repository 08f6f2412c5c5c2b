"""Moved."""

from resolvent.replay.steps import starts_taken, steps_taken  # noqa: F401
