"""Moved."""

from resolvent.traces.scan.shards import footers  # noqa: F401
