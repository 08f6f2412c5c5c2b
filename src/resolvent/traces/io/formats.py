"""Traces in files and Minari datasets ↔ `TraceSet`; the format of a file is detected here.

The content determines the format when reading, the name when writing. The prefix `minari:`
names a Minari dataset.
"""

import io
import os
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from resolvent._util.files import atomic_write, is_address, reason_of, unchanged
from resolvent._util.parallel import FractionListener
from resolvent._util.text import visible
from resolvent._util.validation import check_arguments, explain_memory_errors, is_zero_dim, quoted
from resolvent.errors import OptionError, TraceError
from resolvent.traces.io.json_lines import (
    BUFFER_BYTES,
    Line,
    json_lines,
    paper_lines,
    read_json_lines,
    read_lines,
    read_paper_lines,
)
from resolvent.traces.io.read_table import scan_traces
from resolvent.traces.scan.listing import files_of, is_glob
from resolvent.traces.schema import NAME_COLUMNS, check_column_names
from resolvent.traces.source import TraceDataset
from resolvent.traces.trace import Trace
from resolvent.traces.trace_set import TraceSet

FORMATS = ("jsonl", "paper", "parquet")
_PARQUET_MAGIC = b"PAR1"
_READERS = {"jsonl": read_json_lines, "paper": read_paper_lines}
_WRITERS = {"jsonl": json_lines, "paper": paper_lines}
MINARI_PREFIX = "minari:"
_MINARI_ID = re.compile(r"([-\w][-\w/]*[-\w]/)?[-\w]+-v\d+")  # as Minari has it
_FORMAT_OF_SUFFIX = {".parquet": "parquet", ".jsonl": "jsonl", ".json": "jsonl"}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


def read_traces(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    labeling_fn: Callable[..., Any] | None = None,
    columns: Iterable[str] = (),
    progress: FractionListener | None = None,
) -> TraceSet:
    """Read a file of traces, a folder of Parquet files, or a Minari dataset.

    The content determines the format: Parquet, JSON lines or the paper's JSON lines, the
    latter two plain or compressed by gzip or zstd. `format="parquet"`, `"jsonl"` or `"paper"`
    overrides it. `progress` is called now and then with the completed fraction of the work.

    `"minari:NAMESPACE/NAME-v0"` reads the Minari dataset of that id from this machine. Its
    labels are those in its infos, or the result of `labeling_fn(observation)` or
    `labeling_fn(observation, action, next_observation)`, if given.

    Further columns that were written with the traces come back. `columns` names others to read:
    columns of a Parquet table, keys of the lines beside `"rewards"`, or infos of a Minari dataset.
    """
    check_arguments(read_traces, locals(), leaving=["columns"])
    column_names = check_column_names(columns)
    if dataset_id := minari_id(path):
        from resolvent.traces.io.minari import read_minari  # imports Gymnasium

        _check_no_format(path, format)
        return read_minari(dataset_id, progress, labeling_fn, column_names)
    if labeling_fn is not None:
        raise OptionError(f"{path} holds its labels already: labeling_fn is for Minari datasets")
    path = Path(path)
    _check_format(format)
    try:
        with explain_memory_errors(f"{path} was read"):
            traces = _read(path, format, column_names, progress)
    except FileNotFoundError as error:
        raise TraceError(f"{path} does not exist") from error
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {reason_of(error)}") from error
    if progress:
        progress(1.0)
    return traces


def _read(
    path: Path,
    format: str | None,  # noqa: A002
    columns: Sequence[str],
    progress: FractionListener | None,
) -> TraceSet:
    if not path.is_dir():
        with io.BufferedReader(path.open("rb", buffering=0), BUFFER_BYTES) as file:
            start = file.peek(len(_PARQUET_MAGIC))
            if not start:
                raise TraceError(f"{path} is empty: make it again, or name another file")
            if not (format == "parquet" or (format is None and start.startswith(_PARQUET_MAGIC))):
                with unchanged(path):
                    lines = read_lines(file, str(path), progress)
                    first = next(lines, None)
                    if first is None:
                        raise TraceError(f"{path} holds no traces: it has only blank lines")
                    read = _READERS[format or _line_format(first, path)]
                    return read(chain([first], lines), columns)
    # Importing Parquet takes longer than reading a small file of another format.
    from resolvent.traces.scan.opening import read_files

    return read_files(files_of(path), None, columns, progress).traces


def _line_format(line: Line, path: Path) -> str:
    start = line.text.lstrip()[:1]
    if line.text.strip() == b"{":
        raise TraceError(
            f"{path}: not traces: it is one JSON document over several lines, as files of machines "
            f"are; a file of traces is Parquet, or JSON lines with an episode on each line"
        )
    if start in (b"{", b"["):
        return "jsonl" if start == b"{" else "paper"
    from resolvent.traces.io.sources import header_of  # importing it takes longer than reading

    names = header_of(line.text, line.location)[0]
    if len(names) > 1 or path.suffix.lower() == ".csv":
        raise TraceError(
            f"{line.location}: not traces: it looks like a table with the columns "
            f"{', '.join(map(visible, names))}: {NAME_COLUMNS}; a file of traces is Parquet, or "
            f"JSON lines"
        )
    raise TraceError(
        f"{line.location}: not traces: a file of traces is Parquet, "
        f"or JSON lines that each start with {{ or ["
    )


def write_traces(traces: TraceSet, path: str | Path, *, format: str | None = None) -> None:  # noqa: A002
    """Write traces to a file as `TraceSet.save` does."""
    check_arguments(write_traces, locals())
    if dataset_id := minari_id(path):
        from resolvent.traces.io.minari import write_minari  # imports Gymnasium

        _check_no_format(path, format)
        write_minari(traces, dataset_id)
        return
    path = Path(path)
    format = written_format(path, format)  # noqa: A001
    if not len(traces):
        raise TraceError(f"there are no traces to write to {path}")
    with atomic_write(path) as file:
        if format == "parquet":
            from pyarrow.parquet import write_table

            write_table(traces.to_arrow(), file, compression="zstd")
        elif compression := _COMPRESSIONS.get(path.suffix.lower()):
            # Arrow closes what it writes to, and `atomic_write` needs the file.
            copy = os.fdopen(os.dup(file.fileno()), "wb")
            with pa.CompressedOutputStream(copy, compression) as stream:
                for line in _WRITERS[format](traces):
                    stream.write(line)
        else:
            file.writelines(_WRITERS[format](traces))


def written_format(path: Path, format: str | None) -> str:  # noqa: A002
    """Return the format that `write_traces` uses; `OptionError` as there."""
    _check_format(format)
    is_compressed = path.suffix.lower() in _COMPRESSIONS
    suffix = Path(path.stem if is_compressed else path.name).suffix.lower()
    format = format or _FORMAT_OF_SUFFIX.get(suffix)  # noqa: A001
    if format is None:
        raise OptionError(
            f"{path}: the name does not say which format to write: end it in .parquet, .jsonl, "
            f".jsonl.gz or .jsonl.zst, or name the format ({', '.join(FORMATS)})"
        )
    if format == "parquet" and is_compressed:
        raise OptionError(f"{path}: Parquet is compressed inside; leave out {path.suffix}")
    return format


def _check_format(format: str | None) -> None:  # noqa: A002
    if format is not None and format not in FORMATS:
        raise OptionError(f"unknown format {quoted(format)}: use one of {', '.join(FORMATS)}")


def _check_no_format(path: str | Path, format: str | None) -> None:  # noqa: A002
    if format is not None:
        raise OptionError(f"{path} is a Minari dataset: leave out the format {quoted(format)}")


def minari_id(path: str | Path) -> str | None:
    """Return the id of the Minari dataset that a path names; None for the name of a file."""
    name = str(path)
    if not name.startswith(MINARI_PREFIX):
        return None
    dataset_id = name.removeprefix(MINARI_PREFIX)
    if not _MINARI_ID.fullmatch(dataset_id):
        raise TraceError(
            f"{name} does not name a Minari dataset: write minari:NAMESPACE/NAME-v0, in letters, "
            f"digits, - and _, the namespace at least two of them"
        )
    return dataset_id


def as_traces(traces: Any, columns: Iterable[str] = ()) -> TraceSet | TraceDataset:
    """Return traces in any form that functions accept as a `TraceSet` or `TraceDataset`.

    Paths are read, addresses and globs scanned, and lists of `Trace` collected. `columns` are
    further columns to read from a path.
    """
    if isinstance(traces, TraceSet | TraceDataset):
        return traces
    if isinstance(traces, str | Path):
        if is_address(traces) or (is_glob(str(traces)) and not Path(traces).exists()):
            return scan_traces(traces, columns)
        return read_traces(traces, columns=columns)
    type_name = type(traces).__name__
    if hasattr(traces, "__arrow_c_stream__") or hasattr(traces, "iloc"):
        raise TraceError(
            f"a {type_name} has columns whose roles are unknown: read it with "
            f"rs.read_table(table, episode=..., observation=..., action=...) or rs.read_log"
        )
    if isinstance(traces, Trace):
        raise TraceError("one trace is not a set of traces: give a list of them, [trace]")
    if isinstance(traces, Iterable) and not isinstance(traces, bytes) and not is_zero_dim(traces):
        elements = list(traces)
        foreign = [type(element).__name__ for element in elements if not isinstance(element, Trace)]
        if not foreign:
            return TraceSet(elements)
        type_name = f"{type_name} with a {foreign[0]}"
    raise TraceError(
        f"a value of type {type_name} is not a set of traces: give a TraceSet, a list of "
        f"Trace, or the path of a file of traces"
    )


def to_trace_set(traces: Any) -> TraceSet:
    """Return traces in memory, as `as_traces` does; `TraceError` for a scanned folder."""
    converted = as_traces(traces)
    if isinstance(converted, TraceDataset):
        raise TraceError(
            f"{converted.location} was scanned, not read, and this needs traces in memory: read "
            f"some of its files with read_traces, or one shard with its method read"
        )
    return converted
