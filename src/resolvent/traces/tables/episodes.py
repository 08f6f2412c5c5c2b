"""Moved."""

from resolvent.traces.io.episodes import rows_in_order  # noqa: F401
