"""Moved."""

from resolvent.machines.compare import is_isomorphic, is_minimal  # noqa: F401
