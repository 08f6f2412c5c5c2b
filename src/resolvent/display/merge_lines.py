"""Moved."""

from resolvent.viz.merge_log import log_lines  # noqa: F401
