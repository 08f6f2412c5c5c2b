"""Moved."""

from resolvent._util.folders import recover  # noqa: F401
