"""Moved."""

from resolvent.viz.terminal import show, table  # noqa: F401
