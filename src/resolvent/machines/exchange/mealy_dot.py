"""Moved."""

from resolvent.machines.io.mealy_dot import to_mealy_dot  # noqa: F401
