"""Moved."""

from resolvent.inference.engine import ENGINES  # noqa: F401
