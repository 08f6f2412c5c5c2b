"""Moved."""

from resolvent.traces.scan.dataset import TraceFolder, scan_traces  # noqa: F401
from resolvent.traces.source import (  # noqa: F401
    JoinedShards,
    Shards,
    ShardsInMemory,
    gaps_of,
    look_at,
)
