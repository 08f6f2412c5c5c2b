"""Moved."""

from resolvent._util.processes import starting_safely  # noqa: F401
