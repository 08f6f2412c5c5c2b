"""Moved."""

from resolvent.machines.knowledge import Answer  # noqa: F401
