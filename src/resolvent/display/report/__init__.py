"""Moved."""

from resolvent.viz.report.page import report  # noqa: F401
