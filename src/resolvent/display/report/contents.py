"""Moved."""

from resolvent.viz.report.contents import contents  # noqa: F401
