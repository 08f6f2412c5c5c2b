"""Moved."""

from resolvent.traces.scan.shards import Pieces, footers  # noqa: F401
