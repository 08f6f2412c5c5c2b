"""The passes over files whose results are cached, so that an interrupted inference can resume."""

from resolvent._util.cache import CachedType, CachingWorkers, Store
from resolvent._util.parallel import Workers
from resolvent.replay.coded_shard import Alphabets
from resolvent.replay.corpus import FetchTraces
from resolvent.replay.counts import MachineCounts, ReplayCounts
from resolvent.replay.replaying import ReplayPass
from resolvent.replay.scan import Pool, PoolPass, ScanCounts, ScanPass
from resolvent.traces import TraceSet
from resolvent.traces.digest import TraceDigest
from resolvent.traces.source import RowOrder, SkippedRows

CACHED_PASSES = {
    ScanPass: CachedType(ScanCounts, (ScanCounts, Pool, SkippedRows, RowOrder, TraceDigest)),
    PoolPass: CachedType(Pool, (Pool,)),
    FetchTraces: CachedType(TraceSet),
    ReplayPass: CachedType(ReplayCounts, (ReplayCounts, MachineCounts, Alphabets)),
}


def with_cache(workers: Workers, folder: str | None) -> Workers:
    """Return workers that cache results in a folder or at an address; as they are if it is None."""
    return workers if folder is None else CachingWorkers(workers, Store(folder), CACHED_PASSES)
