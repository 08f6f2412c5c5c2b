"""Moved."""

from resolvent.replay.replaying import MachineTable, Tables  # noqa: F401
