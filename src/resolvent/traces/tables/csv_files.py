"""Moved."""

from resolvent.traces.io.csv import header, read_csv  # noqa: F401
