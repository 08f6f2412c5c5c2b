"""Moved."""

from resolvent.machines.build import answering  # noqa: F401
