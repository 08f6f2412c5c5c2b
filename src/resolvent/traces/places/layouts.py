"""Moved."""

from resolvent.traces.scan.layouts import Layout  # noqa: F401
