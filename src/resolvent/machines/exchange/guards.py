"""Moved."""

from resolvent.machines.io.guards import Guard  # noqa: F401
