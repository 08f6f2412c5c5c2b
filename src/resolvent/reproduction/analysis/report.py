"""Moved."""

from resolvent.paper.report import (LEGEND, _different_traces, conditions, markdown, troubles, write_report)  # noqa: F401
