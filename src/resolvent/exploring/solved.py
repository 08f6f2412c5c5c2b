"""Moved."""

from resolvent.exploration.solution import ABOUT, MACHINES, TRACES  # noqa: F401
