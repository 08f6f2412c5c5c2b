"""Moved."""

from resolvent.traces.io.table import traces_of_rows  # noqa: F401
