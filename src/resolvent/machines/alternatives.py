"""Moved."""

from resolvent.machines.compare import Alternative  # noqa: F401
