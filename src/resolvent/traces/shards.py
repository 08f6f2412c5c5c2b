"""Traces in pieces: files larger than memory, or sets that are in memory already.

A shard is a `TraceSet` with vocabularies of its own. Whoever goes through
shards holds one at a time, and may do so again and again.
"""

import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from resolvent.arguments import shown
from resolvent.errors import OptionError, TableWarning
from resolvent.traces.arrangement import Arrangement, Arrangements
from resolvent.traces.column_names import check_column_names
from resolvent.traces.gap import Gap, gaps_text
from resolvent.traces.symbols import Symbol
from resolvent.traces.tables.reading import Names, roles_of
from resolvent.traces.tables.roles import Name, Spelled
from resolvent.traces.trace_set import TraceSet

if TYPE_CHECKING:
    # Loading what reads Parquet takes longer than all else of `import resolvent`.
    from resolvent.traces.places.layouts import Layout
    from resolvent.traces.places.pieces import Pieces

_READ_AHEAD = 2


class Shards(Protocol):
    """Pieces of traces that can be gone through repeatedly."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[TraceSet]: ...

    def read(self, number: int) -> TraceSet:
        """Return one shard."""

    def name(self, number: int) -> str | None:
        """Return what an error should call a shard; None when there is just one."""


def look_at(shards: Shards, number: int) -> tuple[TraceSet, Gap | None]:
    """Return one shard, and what is left out of it as files are damaged, if that is asked for."""
    look = getattr(shards, "look", None)
    return (shards.read(number), None) if look is None else look(number)


def leaving_out(shards: Shards, gaps: Mapping[int, Gap]) -> Shards:
    """Return shards without what was found to be damaged: the same whenever they are read."""
    if not getattr(shards, "skips", False):
        return shards
    fixed: Shards = shards.leaving_out(gaps)  # type: ignore[attr-defined]
    return fixed


def gaps_of(shards: Shards) -> Mapping[int, Gap]:
    """Return what is left out of shards as files are damaged, by their numbers."""
    return getattr(shards, "gaps", {})


def are_same(one: Shards, other: Shards) -> bool:
    """Whether shards are the same files read in the same way, but for what is damaged."""
    if isinstance(one, TraceFolder) and isinstance(other, TraceFolder):
        return one._pieces is other._pieces and one._layout is other._layout
    return one is other


def arrangements_of(shards: Shards) -> Mapping[int, Arrangement]:
    """Return how the rows of shards stand that were read already, by their numbers."""
    return getattr(shards, "arrangements", {})


def remember(shards: Shards, arrangements: Mapping[int, Arrangement]) -> None:
    """Tell shards how their rows stand, as others found who read them."""
    if arrangements:
        shards.remember(arrangements)  # type: ignore[attr-defined]


def seal_of(shards: Shards, number: int) -> Any:
    """Return all that a shard depends on, as plain data; None if it is not read from files."""
    seal = getattr(shards, "seal", None)
    return None if seal is None else seal(number)


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

    def seal(self, number: int) -> Any:
        """Return all that a shard depends on, as plain data; None if it is in memory."""
        return seal_of(*self._place(number))

    @property
    def gaps(self) -> Mapping[int, Gap]:
        """What is left out of shards, by their numbers."""
        found: dict[int, Gap] = {}
        first = 0
        for source in self.sources:
            found |= {first + number: gap for number, gap in gaps_of(source).items()}
            first += len(source)
        return found

    def _place(self, number: int) -> tuple[Shards, int]:
        for source in self.sources:
            if number < len(source):
                break
            number -= len(source)
        return source, number


class TraceFolder:
    """Traces in Parquet files that need not fit into memory: they are read piece by piece.

    `scan_traces` makes it. A piece is a file or, of a large one, row groups that follow each
    other. Any piece may be read by itself, in any order and in any process. `rows` is how many
    rows the files say they hold. `gaps` are what is left out of pieces, by their numbers, as files
    are damaged; where this is still to be found out (`skips`), there are none. `arrangements` are
    how the rows of pieces stand that were read already; others are read as if for the first time.
    """

    def __init__(
        self,
        place: str,
        pieces: "Pieces",
        layout: "Layout",
        gaps: Mapping[int, Gap] | None = None,
    ) -> None:
        self.place = place
        self.rows = pieces.rows
        self._pieces, self._layout = pieces, layout
        self.skips = pieces.stored.skips and gaps is None
        self.gaps: Mapping[int, Gap] = dict(gaps or {})
        self._warned = False
        self.arrangements = Arrangements()

    def __len__(self) -> int:
        return len(self._pieces)

    def __iter__(self) -> Iterator[TraceSet]:
        # The next pieces are read while the caller looks at this one.
        with ThreadPoolExecutor(_READ_AHEAD) as readers:
            waiting: deque[Future[tuple[TraceSet, Gap | None, list[str]]]] = deque()
            ahead = iter(range(len(self)))
            try:
                for number in ahead:
                    waiting.append(readers.submit(self._read, number))
                    if len(waiting) > _READ_AHEAD:
                        yield self._said(*waiting.popleft().result())
                while waiting:
                    yield self._said(*waiting.popleft().result())
            finally:
                for future in waiting:
                    future.cancel()

    def read(self, number: int) -> TraceSet:
        """Read the traces that begin in one piece."""
        return self._said(*self._read(number))

    def look(self, number: int) -> tuple[TraceSet, Gap | None]:
        """Read the traces that begin in one piece, and say what is left out as it is damaged.

        `leaving_out` then holds everybody to it.
        """
        traces, gap, left_out = self._read(number)
        if self.skips:  # otherwise whoever reads the piece again is told
            self._said(traces, None, left_out)
        return traces, gap

    def leaving_out(self, gaps: Mapping[int, Gap]) -> "TraceFolder":
        """Return the same files without what was found to be damaged, by the pieces' numbers.

        If more should be damaged when it is read, or less, that is not taken into account.
        """
        fixed = TraceFolder(self.place, self._pieces, self._layout, gaps)
        fixed._warned = self._warned
        fixed.remember(self.arrangements)
        return fixed

    def remember(self, arrangements: Mapping[int, Arrangement]) -> None:
        """Take over how the rows of pieces stand, by the pieces' numbers, from who read them."""
        for number, one in arrangements.items():
            if number not in self.gaps:
                self.arrangements[number] = one

    def seal(self, number: int) -> Any:
        """Return all that the traces of a piece depend on, as plain data."""
        return self._pieces.seal(number), self._layout, self.skips, self.gaps.get(number)

    def read_all(self) -> TraceSet:
        """Read all traces into memory."""
        return TraceSet.concatenate(
            self, [self._pieces.name(number) for number in range(len(self))]
        )

    def name(self, number: int) -> str | None:
        """Call a piece by its file, and by its row groups if it is not all of the file."""
        return self._pieces.name(number)

    @property
    def files(self) -> list[str]:
        """What the files are called, in order."""
        return [file.name for file in self._pieces.stored.files]

    def _read(self, number: int) -> tuple[TraceSet, Gap | None, list[str]]:
        """Read one piece, and say what was left out."""
        from resolvent.traces.places.gaps import read_around, read_or_find

        left_out: list[str] = []
        known = self.arrangements.get(number)
        in_order = known is not None and known.in_order
        layout = self._layout.without_order() if in_order else self._layout
        columns, gap = layout.columns, None
        if self.skips:
            rows, gap = read_or_find(self._pieces, number, columns)
        elif number in self.gaps:
            rows = read_around(self._pieces, number, columns, self.gaps[number])
        else:
            rows = self._pieces.read(number, columns, self.arrangements)
        traces, stands = layout.traces(rows, left_out.append)
        # What is left out because it is damaged may depend on which columns are read.
        if known is None and gap is None and number not in self.gaps:
            self.arrangements[number] = Arrangement(rows.front, stands)
        return traces, gap, [f"{self._pieces.name(number)}: {text}" for text in left_out]

    def _said(self, traces: TraceSet, gap: Gap | None, left_out: Sequence[str]) -> TraceSet:
        """Warn of what was left out, of one piece and once: the others will be like it."""
        if gap is not None:
            warnings.warn(gaps_text({0: gap}), TableWarning, stacklevel=3)
        if left_out and not self._warned:
            self._warned = True
            more = "; so it may be in other pieces, of which nothing is said" * (len(self) > 1)
            warnings.warn(left_out[0] + more, TableWarning, stacklevel=3)
        return traces

    def __repr__(self) -> str:
        pieces = f", {len(self)} pieces" if len(self) != len(self.files) else ""
        return f"TraceFolder({self.place!r}, {len(self.files)} files{pieces}, {self.rows} rows)"


def scan_traces(
    place: str | Path | Iterable[str | Path],
    columns: Iterable[str] = (),
    *,
    episode: Names | None = None,
    order: Names | None = None,
    observation: Names | None = None,
    action: Names | None = None,
    reward: Name | None = None,
    label: Names | None = None,
    outputs: Names | Mapping[str, Name] = (),
    terminated: Name | None = None,
    truncated: Name | None = None,
    next_observation: Names | None = None,
    next_label: Names | None = None,
    final_observation: Symbol | Spelled | None = None,
    label_separator: str | None = None,
    input: Names | None = None,  # noqa: A002
    output: Names | Mapping[str, Name] | None = None,
    damaged: Literal["refuse", "skip"] = "refuse",
) -> TraceFolder:
    """Open Parquet files without reading them into memory, wherever they are.

    `infer` reads them piece by piece, as often as it needs, so that they may be larger than
    memory. A piece is a file or, of a file with more than a million rows, row groups of about
    so many. Only the columns that are needed are read.

    Args:
        place: A folder, whose files come in the order of their names, with its `key=value`
            folders; a file; a glob, such as `"logs/**/*.parquet"`; an address that PyArrow
            opens, such as `"s3://bucket/logs"`; or a list of these. What begins with a dot or
            an underscore is not read.
        columns: Further columns to read from files of traces, beside those that they list as
            their own.
        episode: As for `read_table`, of which this and all that follows are the words. With
            any of them the files are tables in another layout than ours, and together one
            table: an episode may go on in the next file. Keys of `key=value` folders are
            columns, and so is `__filename`.
        order: As for `read_table`.
        observation: As for `read_table`.
        action: As for `read_table`.
        reward: As for `read_table`.
        label: As for `read_table`.
        outputs: As for `read_table`.
        terminated: As for `read_table`.
        truncated: As for `read_table`.
        next_observation: As for `read_table`.
        next_label: As for `read_table`.
        final_observation: As for `read_table`.
        label_separator: As for `read_table`.
        input: As for `read_log`, with `output`: the files are a log.
        output: As for `read_log`.
        damaged: What to do where files cannot be read since they are damaged, or gone. By default
            that is an error. "skip" leaves out the pieces that cannot be read, and the episodes
            beside them that may have rows there; `result.warnings` of `infer` has what was left
            out, and for all else a `TableWarning` says so.

    Raises:
        DamagedFile: when a file cannot be read and `damaged` is "refuse".
        StorageError: when storage fails again and again.
        TraceError: when the place cannot be reached or holds no Parquet files, when files differ
            in the columns that are read, when the rows of an episode are scattered over pieces,
            and, as pieces are read, when a file has changed since it was opened.

    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
    >>> log = pa.table({"run": [1, 1, 2], "event": ["coin", "push", "push"], "out": [0, 1, 0]})
    >>> folder = tempfile.TemporaryDirectory()
    >>> pq.write_table(log, f"{folder.name}/log.parquet")
    >>> place = f"{folder.name}/*.parquet"
    >>> scanned = scan_traces(place, episode="run", input="event", output="out")
    >>> len(scanned), scanned.rows, scanned.read(0)[0].actions
    (1, 3, ('coin', 'push'))
    >>> folder.cleanup()
    """
    from resolvent.traces.places.layouts import NamedLayout, named_pieces, own_pieces
    from resolvent.traces.places.listing import files_of, place_text

    if not isinstance(damaged, str) or damaged not in ("refuse", "skip"):
        raise OptionError(f"damaged is {shown(damaged)}: write 'refuse' or 'skip'")
    skips = damaged == "skip"
    further = check_column_names(columns)
    named = roles_of(
        {
            "episode": episode,
            "order": order,
            "observation": observation,
            "action": action,
            "reward": reward,
            "label": label,
            "outputs": outputs,
            "terminated": terminated,
            "truncated": truncated,
            "next_observation": next_observation,
            "next_label": next_label,
            "final_observation": final_observation,
            "label_separator": label_separator,
        },
        input,
        output,
    )
    if isinstance(place, Iterator):  # it can be gone through once, and its name is needed, too
        place = list(place)
    if named is None:
        pieces, layout = own_pieces(files_of(place), further, skips=skips)
        return TraceFolder(place_text(place), pieces, layout)
    if further:
        raise OptionError(
            "columns are for files of traces: of a table, name them as outputs (output of a log)"
        )
    table, layout_named = named_pieces(files_of(place), NamedLayout(*named), skips=skips)
    return TraceFolder(place_text(place), table, layout_named)
