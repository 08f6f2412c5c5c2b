"""Which results of going through files are kept, so that an interrupted inference can go on."""

from resolvent.keeping import KeepingWorkers, Results, Store
from resolvent.replay.coded import Alphabets
from resolvent.replay.corpus import Fetching
from resolvent.replay.looking import Look, Looking, Pooling
from resolvent.replay.pool import Pool
from resolvent.replay.replaying import Replaying
from resolvent.replay.shown import Replay, Sightings
from resolvent.traces import TraceSet
from resolvent.traces.arrangement import Arrangement
from resolvent.traces.digest import TraceDigest
from resolvent.traces.gap import Gap
from resolvent.workers import Workers

RESULTS = {
    Looking: Results(Look, (Look, Pool, Gap, Arrangement, TraceDigest)),
    Pooling: Results(Pool, (Pool,)),
    Fetching: Results(TraceSet),
    Replaying: Results(Replay, (Replay, Sightings, Alphabets)),
}


def keeping(workers: Workers, folder: str | None) -> Workers:
    """Return workers that keep results in a folder, or at an address; as they are if it is None."""
    return workers if folder is None else KeepingWorkers(workers, Store(folder), RESULTS)
