"""Moved."""

from resolvent.viz.terminal import Amount, ProgressBar  # noqa: F401
