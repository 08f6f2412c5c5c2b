"""TRACES on the command line → traces in memory, or a place that is gone through in pieces."""

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from resolvent._util.startup import is_command
from resolvent._util.storage import is_address
from resolvent._util.text import amount, visible
from resolvent.cli.tables import TableOptions
from resolvent.errors import OptionError
from resolvent.inference.refinement import REFINE_ABOVE_STEPS
from resolvent.traces import TraceDataset, TraceSet
from resolvent.traces.scan.listing import files_of, is_glob
from resolvent.viz.terminal import ProgressBar

FILE_ROWS = 10_000_000
"""A Parquet file with more rows than this is gone through in pieces, not read whole."""

_MAGIC = b"PAR1"

Place = Annotated[
    str,
    typer.Argument(
        metavar="TRACES",
        help="A file of traces (Parquet, JSON lines or the paper's JSON lines, also compressed by "
        "gzip or zstd), a folder of Parquet files, a glob of them in quotes, an address of them "
        "such as s3://bucket/logs, minari:NAMESPACE/NAME-v0, a Minari dataset; or a table whose "
        "columns you name.",
        show_default=False,
    ),
]


@contextmanager
def reading() -> Iterator[None]:
    """Do not look for garbage among traces while they are read, nor ever after.

    Of a million labels there are millions of objects, none of which is garbage while the command
    runs, and each search through them takes about a second. Where commands run in the process of
    somebody else, that one's garbage is looked for again afterwards.
    """
    looking = gc.isenabled()
    gc.disable()
    try:
        yield
        if is_command():
            gc.freeze()
    finally:
        if looking:
            gc.enable()


@reading()
def opened(
    place: str,
    table: TableOptions,
    columns: Sequence[str],
    bar: ProgressBar,
    *,
    in_pieces: bool = True,
    format: str | None = None,  # noqa: A002
    damaged: str = "refuse",
) -> TraceSet | TraceDataset:
    """Read traces; those of a large place are only opened, unless all are needed at once.

    Where files that are damaged are left out, a place is always gone through in pieces.
    """
    path = Path(place)
    elsewhere = _is_elsewhere(place)
    if damaged == "skip":
        if path.is_file() and not _may_be_large(path):
            raise OptionError(f"{place} is no Parquet file: leave out --damaged skip")
        return table.scan(place, columns, damaged=damaged)
    if elsewhere and format not in (None, "parquet"):
        raise OptionError(f"{place} is read as Parquet: leave out the format {format!r}")
    if not elsewhere and not path.is_dir() and not _may_be_large(path):
        return table.read(path, columns, bar.reading(path), format=format)
    files = files_of(place)
    partitioned = path.is_dir() and any(Path(file.path).parent != path.absolute() for file in files)
    by_scanning = elsewhere or (partitioned and table.given)
    most = FILE_ROWS if path.is_file() else REFINE_ABOVE_STEPS
    if by_scanning or (in_pieces and _rows_of(place) > most):
        scanned = table.scan(place, columns)
        return scanned if in_pieces and scanned.rows > REFINE_ABOVE_STEPS else scanned.read_all()
    return table.read(path, columns, bar.reading(path), format=format)


def say_what_is_idle(traces: TraceSet | TraceDataset, on: str, resume: str | None = None) -> None:
    """Say on standard error that nobody is needed for traces which were read into memory."""
    asked = [f"--on {on}"] * (on != "threads") + [f"--resume {resume}"] * (resume is not None)
    if asked and isinstance(traces, TraceSet):
        print(
            f"resolvent: note: {amount(traces.steps, 'step')} were read into memory, where there "
            f"is nothing to do for {visible(' and '.join(asked))}",
            file=sys.stderr,
        )


def files_read(place: str) -> list[Path]:
    """Return the files and folders on this machine that TRACES stands for."""
    if not _is_elsewhere(place):
        return [Path(place)]
    return [Path(file.path) for file in files_of(place) if file.root is None]


def _is_elsewhere(place: str) -> bool:
    return is_address(place) or (is_glob(place) and not Path(place).exists())


def _may_be_large(path: Path) -> bool:
    """Whether a file is Parquet, of which the end says how large it is."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False  # whoever reads it will say why


def _rows_of(place: str) -> int:
    from resolvent.traces.scan.shards import read_footers

    return sum(sum(end.groups) for end in read_footers(files_of(place), ())[1])
