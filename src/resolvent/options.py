"""Moved."""

from resolvent.inference.options import Options  # noqa: F401
