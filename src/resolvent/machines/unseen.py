"""Moved."""

from resolvent.machines.knowledge import UNSEEN, State, Unseen  # noqa: F401
