"""Moved."""

from resolvent.viz.report.learning import curve, read_policy, read_returns  # noqa: F401
