"""Moved."""

from resolvent.machines.build import description_bits  # noqa: F401
