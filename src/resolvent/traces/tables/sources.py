"""Moved."""

from resolvent.traces.io.sources import TableSource, open_table, without_views  # noqa: F401
