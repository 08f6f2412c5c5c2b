"""Moved."""

from resolvent.machines.compare import history_text, ways_text  # noqa: F401
