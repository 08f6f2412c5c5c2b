"""Moved."""

from resolvent.planning.model import Model  # noqa: F401
