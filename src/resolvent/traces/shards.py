"""Traces in pieces: a folder larger than memory, or sets that are in memory already.

A shard is a `TraceSet` with vocabularies of its own. Whoever goes through
shards holds one at a time, and may do so again and again.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Protocol

from resolvent.errors import TraceError
from resolvent.traces.column_names import check_column_names
from resolvent.traces.trace_set import TraceSet

_READ_AHEAD = 2


class Shards(Protocol):
    """Pieces of traces that can be gone through repeatedly."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[TraceSet]: ...

    def read(self, number: int) -> TraceSet:
        """Return one shard."""

    def name(self, number: int) -> str | None:
        """Return what an error should call a shard; None when there is just one."""


class ShardsInMemory:
    """Trace sets that are in memory, as shards."""

    def __init__(self, sets: Sequence[TraceSet]) -> None:
        self.sets = tuple(sets)

    def __len__(self) -> int:
        return len(self.sets)

    def __iter__(self) -> Iterator[TraceSet]:
        return iter(self.sets)

    def read(self, number: int) -> TraceSet:
        """Return one of the sets."""
        return self.sets[number]

    def name(self, number: int) -> str | None:
        """Call a set by its number, if there are several."""
        return f"trace set {number}" if len(self.sets) > 1 else None


class JoinedShards:
    """The shards of several sources, one after the other."""

    def __init__(self, sources: Sequence[Shards]) -> None:
        self.sources = tuple(sources)

    def __len__(self) -> int:
        return sum(map(len, self.sources))

    def __iter__(self) -> Iterator[TraceSet]:
        return chain.from_iterable(self.sources)

    def read(self, number: int) -> TraceSet:
        """Return one shard."""
        source, number = self._place(number)
        return source.read(number)

    def name(self, number: int) -> str | None:
        """Call a shard as its source does, or else say which source it is of."""
        source, local = self._place(number)
        return source.name(local) or f"trace set {self.sources.index(source)}"

    def _place(self, number: int) -> tuple[Shards, int]:
        for source in self.sources:
            if number < len(source):
                break
            number -= len(source)
        return source, number


class TraceFolder:
    """A folder of Parquet files, each read when its turn comes and then let go.

    Files come in the order of their names. `rows` is what the files say they
    hold: a row for each step, and one more for each trace. `columns` are further
    ones to read, beside those that the files list as their own.
    """

    def __init__(self, path: str | Path, columns: Iterable[str] = ()) -> None:
        from resolvent.traces.files.parquet import parquet_files, rows_of

        self.path = Path(path)
        self.columns = check_column_names(columns)
        self.files = parquet_files(self.path)
        self.rows = sum(rows_of(file) for file in self.files)

    def __len__(self) -> int:
        return len(self.files)

    def __iter__(self) -> Iterator[TraceSet]:
        # The next files are read while the caller looks at this one.
        with ThreadPoolExecutor(_READ_AHEAD) as readers:
            waiting: deque[Future[TraceSet]] = deque()
            ahead = iter(range(len(self)))
            try:
                for number in ahead:
                    waiting.append(readers.submit(self.read, number))
                    if len(waiting) > _READ_AHEAD:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def read(self, number: int) -> TraceSet:
        """Read one file."""
        from resolvent.traces.files.parquet import read_parquet

        return read_parquet(self.files[number], columns=self.columns)

    def name(self, number: int) -> str | None:
        """Call a file by its path."""
        return str(self.files[number])

    def __repr__(self) -> str:
        return f"TraceFolder({str(self.path)!r}, {len(self)} files, {self.rows} rows)"


def scan_traces(path: str | Path, columns: Iterable[str] = ()) -> TraceFolder:
    """Open a folder of Parquet files without reading them into memory.

    `infer` reads such a folder one file at a time, as often as it needs, so
    that it may be larger than memory. A file should hold some ten thousand to
    some million steps. `columns` names table columns to read as further columns
    of the traces, beside those that the files list as their own.
    """
    path = Path(path)
    if not path.exists():
        raise TraceError(f"{path} does not exist")
    if not path.is_dir():
        raise TraceError(f"{path} is not a folder of Parquet files: read it with read_traces")
    return TraceFolder(path, columns)
