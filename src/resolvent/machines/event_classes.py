"""Moved."""

from resolvent.machines.compare import Event, Events  # noqa: F401
