"""What a caller gives as traces → a `TraceSet` or `TraceFolder`, or an error with what to do."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from resolvent.arguments import is_single
from resolvent.errors import TraceError
from resolvent.traces.files.any_format import read_traces
from resolvent.traces.places.addresses import is_address
from resolvent.traces.places.listing import is_glob
from resolvent.traces.shards import TraceFolder, scan_traces
from resolvent.traces.trace import Trace
from resolvent.traces.trace_set import TraceSet


def as_traces(given: Any, columns: Iterable[str] = ()) -> TraceSet | TraceFolder:
    """Return traces as they are, read from a path, or made of single ones.

    An address or a glob is scanned. `columns` are further ones to read from a path.

    >>> as_traces([Trace(["hall", "attic"], [None, "key"], ["up"])])
    TraceSet(1 traces, 1 steps, 2 observations, 2 labels, 1 actions)
    >>> as_traces(7)
    Traceback (most recent call last):
    resolvent.errors.TraceError: a value of type int is no traces: give a TraceSet, a list of \
Trace, or the path of a file of traces
    """
    if isinstance(given, TraceSet | TraceFolder):
        return given
    if isinstance(given, str | Path):
        if is_address(given) or (is_glob(str(given)) and not Path(given).exists()):
            return scan_traces(given, columns)
        return read_traces(given, columns=columns)
    kind = type(given).__name__
    if hasattr(given, "__arrow_c_stream__") or hasattr(given, "iloc"):
        raise TraceError(
            f"a {kind} does not say which of its columns hold what: read it with "
            f"rs.read_table(table, episode=..., observation=..., action=...) or rs.read_log"
        )
    if isinstance(given, Trace):
        raise TraceError("one trace is no set of traces: give a list of them, [trace]")
    if isinstance(given, Iterable) and not isinstance(given, bytes) and not is_single(given):
        traces = list(given)
        odd = [type(one).__name__ for one in traces if not isinstance(one, Trace)]
        if not odd:
            return TraceSet(traces)
        kind = f"{kind} with a {odd[0]}"
    raise TraceError(
        f"a value of type {kind} is no traces: give a TraceSet, a list of Trace, or the path "
        f"of a file of traces"
    )


def as_trace_set(given: Any) -> TraceSet:
    """Return traces in memory, as `as_traces` does; a scanned folder is refused."""
    traces = as_traces(given)
    if isinstance(traces, TraceFolder):
        raise TraceError(
            f"{traces.place} was scanned, not read, and this needs traces in memory: read some of "
            f"its files with read_traces, or one piece with its method read"
        )
    return traces
