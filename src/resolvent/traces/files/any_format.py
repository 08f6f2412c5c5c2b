"""Trace files of any format, and Minari datasets ↔ `TraceSet`.

What a file holds is told by its content. Only when writing does its name say
which format it gets. A Minari dataset is told by the prefix of its name.
"""

import gzip
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from resolvent.arguments import check_arguments, shown
from resolvent.atomic_file import atomic_write
from resolvent.errors import OptionError, TraceError
from resolvent.limits import telling_of_memory
from resolvent.progress import FractionListener
from resolvent.traces.column_names import check_column_names
from resolvent.traces.files.changes import unchanged
from resolvent.traces.files.json_lines import json_lines, read_json_lines
from resolvent.traces.files.lines import BUFFER_BYTES, Line, read_lines
from resolvent.traces.files.paper_lines import paper_lines, read_paper_lines
from resolvent.traces.minari.datasets import minari_id
from resolvent.traces.minari.writing import write_minari
from resolvent.traces.tables.headers import header_of
from resolvent.traces.tables.roles import NAME_COLUMNS
from resolvent.traces.trace_set import TraceSet
from resolvent.wording import visible

FORMATS = ("jsonl", "paper", "parquet")
_PARQUET_MAGIC = b"PAR1"
_READERS = {"jsonl": read_json_lines, "paper": read_paper_lines}
_WRITERS = {"jsonl": json_lines, "paper": paper_lines}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


def read_traces(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    label_of: Callable[..., Any] | None = None,
    columns: Iterable[str] = (),
    progress: FractionListener | None = None,
) -> TraceSet:
    """Read a file of traces, a folder of Parquet files, or a Minari dataset.

    The format is told by content: Parquet, JSON lines or the paper's JSON lines,
    the latter two plain or compressed by gzip or zstd. Pass `format="parquet"`,
    `"jsonl"` or `"paper"` to say it yourself. `progress` is called now and then
    with the fraction of the work that is done.

    `"minari:NAMESPACE/NAME-v0"` reads the Minari dataset of that id from this
    machine. Its labels are those in its infos, or what `label_of(observation)`
    or `label_of(observation, action, next_observation)` returns, if given.

    Further columns that were written with the traces come back. `columns` names
    others to read: columns of a Parquet table, keys of the lines beside
    `"rewards"`, or infos of a Minari dataset.
    """
    check_arguments(read_traces, locals(), leaving=["columns"])
    named = check_column_names(columns)
    if dataset_id := minari_id(path):
        from resolvent.traces.minari.reading import read_minari  # and with it Gymnasium

        _check_no_format(path, format)
        return read_minari(dataset_id, progress, label_of, named)
    if label_of is not None:
        raise OptionError(f"{path} holds its labels already: label_of is for Minari datasets")
    path = Path(path)
    _check_format(format)
    try:
        with telling_of_memory(f"{path} was read"):
            traces = _read(path, format, named, progress)
    except FileNotFoundError as error:
        raise TraceError(f"{path} does not exist") from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise TraceError(f"{path} cannot be read: {reason}") from error
    if progress:
        progress(1.0)
    return traces


def _read(
    path: Path,
    format: str | None,  # noqa: A002
    columns: Sequence[str],
    progress: FractionListener | None,
) -> TraceSet:
    if path.is_dir():
        return _read_parquet(path, columns, progress)
    with io.BufferedReader(path.open("rb", buffering=0), BUFFER_BYTES) as file:
        start = file.peek(len(_PARQUET_MAGIC))
        if not start:
            raise TraceError(f"{path} is empty: make it again, or name another file")
        if format == "parquet" or (format is None and start.startswith(_PARQUET_MAGIC)):
            return _read_parquet(path, columns, progress)
        with unchanged(path):
            lines = read_lines(file, str(path), progress)
            first = next(lines, None)
            if first is None:
                raise TraceError(f"{path} holds no traces: it has only blank lines")
            return _READERS[format or _line_format(first, path)](chain([first], lines), columns)


def _line_format(line: Line, path: Path) -> str:
    start = line.text.lstrip()[:1]
    if line.text.strip() == b"{":
        raise TraceError(
            f"{path}: not traces: it is one JSON document over several lines, as files of machines "
            f"are; a file of traces is Parquet, or JSON lines with an episode on each line"
        )
    if start == b"{":
        return "jsonl"
    if start == b"[":
        return "paper"
    names = header_of(line.text, line.place)[0]
    if len(names) > 1 or path.suffix.lower() == ".csv":
        raise TraceError(
            f"{line.place}: not traces: it looks like a table with the columns "
            f"{', '.join(map(visible, names))}: {NAME_COLUMNS}; a file of traces is Parquet, or "
            f"JSON lines"
        )
    raise TraceError(
        f"{line.place}: not traces: a file of traces is Parquet, "
        f"or JSON lines that each start with {{ or ["
    )


def _read_parquet(
    path: Path, columns: Sequence[str], progress: FractionListener | None
) -> TraceSet:
    # Loading Parquet takes longer than reading a small file without it.
    from resolvent.traces.files.parquet import read_parquet

    return read_parquet(path, progress, columns)


def write_traces(
    traces: TraceSet,
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
) -> None:
    """Write traces to a file, whole or not at all; the same traces give the same bytes.

    The format follows the name: `.parquet`, or `.jsonl` with an optional `.gz`
    or `.zst`. Pass `format="parquet"`, `"jsonl"` or `"paper"` to say it yourself.
    `"minari:NAMESPACE/NAME-v0"` makes a new Minari dataset of that id.
    """
    check_arguments(write_traces, locals())
    if dataset_id := minari_id(path):
        _check_no_format(path, format)
        write_minari(traces, dataset_id)
        return
    path = Path(path)
    format = written_format(path, format)  # noqa: A001
    if not len(traces):
        raise TraceError(f"there are no traces to write to {path}")
    with atomic_write(path) as file:
        if format == "parquet":
            from resolvent.traces.files.parquet import write_parquet

            write_parquet(traces, file)
        else:
            compression = _COMPRESSIONS.get(path.suffix.lower())
            _write_lines(_WRITERS[format](traces), file, compression)


def written_format(path: Path, format: str | None) -> str:  # noqa: A002
    """Return the format that `write_traces` would use, or refuse as it would."""
    _check_format(format)
    format = format or _format_of_name(path)  # noqa: A001
    if format == "parquet" and path.suffix.lower() in _COMPRESSIONS:
        raise OptionError(f"{path}: Parquet is compressed inside; leave out {path.suffix}")
    return format


def _check_format(format: str | None) -> None:  # noqa: A002
    if format is not None and format not in FORMATS:
        raise OptionError(f"unknown format {shown(format)}: use one of {', '.join(FORMATS)}")


def _check_no_format(path: str | Path, format: str | None) -> None:  # noqa: A002
    if format is not None:
        raise OptionError(f"{path} is a Minari dataset: leave out the format {shown(format)}")


def _format_of_name(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSIONS:
        suffixes.pop()
    match suffixes[-1:]:
        case [".parquet"]:
            return "parquet"
        case [".jsonl" | ".json"]:
            return "jsonl"
    raise OptionError(
        f"{path}: the name does not say which format to write: end it in .parquet, .jsonl, "
        f".jsonl.gz or .jsonl.zst, or name the format ({', '.join(FORMATS)})"
    )


def _write_lines(lines: Iterable[bytes], file: BinaryIO, compression: str | None) -> None:
    if compression == "gzip":
        # No name and no time in the header, so that bytes depend on traces only.
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as zipped:
            zipped.writelines(lines)
    elif compression == "zstd":
        codec = pa.Codec("zstd")
        for block in _blocks(lines):
            file.write(codec.compress(block, asbytes=True))
    else:
        file.writelines(lines)


def _blocks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Join lines into blocks worth compressing; each becomes one zstd frame."""
    block: list[bytes] = []
    size = 0
    for line in lines:
        block.append(line)
        size += len(line)
        if size >= 4 * BUFFER_BYTES:
            yield b"".join(block)
            block, size = [], 0
    if block:
        yield b"".join(block)
