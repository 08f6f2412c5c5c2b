"""Moved."""

from resolvent.exploration.solve import solve  # noqa: F401
