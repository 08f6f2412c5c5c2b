"""Moved."""

from resolvent.machines.tables import TransitionTable  # noqa: F401
