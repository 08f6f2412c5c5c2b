"""The passes over files whose results are cached, so that an interrupted inference can resume."""

from resolvent._util.cache import CachingWorkers, Results, Store
from resolvent._util.parallel import Workers
from resolvent.replay.coded_shard import Alphabets
from resolvent.replay.corpus import Fetching
from resolvent.replay.counts import Replay, Sightings
from resolvent.replay.replaying import Replaying
from resolvent.replay.scan import Look, Looking, Pool, Pooling
from resolvent.traces import TraceSet
from resolvent.traces.digest import TraceDigest
from resolvent.traces.source import Arrangement, Gap

RESULTS = {
    Looking: Results(Look, (Look, Pool, Gap, Arrangement, TraceDigest)),
    Pooling: Results(Pool, (Pool,)),
    Fetching: Results(TraceSet),
    Replaying: Results(Replay, (Replay, Sightings, Alphabets)),
}


def keeping(workers: Workers, folder: str | None) -> Workers:
    """Return workers that cache results in a folder or at an address; as they are if it is None."""
    return workers if folder is None else CachingWorkers(workers, Store(folder), RESULTS)
