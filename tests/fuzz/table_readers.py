"""Tables and logs in other layouts than ours: CSV and Parquet, with columns named by roles."""

import csv
import io
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pyarrow as pa

import resolvent as rs
from fuzz.mutations import TEXTS, TOKENS, damaged
from fuzz.targets import Files, Reader
from fuzz.trace_readers import VARIETY, damaged_table, parquet_bytes

ROLES = ("episode", "order", "observation", "action", "reward", "label", "terminated", "next_label")

HEADER = ("run", "time", "room", "move", "paid", "event", "over", "next")


@cache
def rows(number: int) -> tuple[tuple[str, ...], ...]:
    """Return the rows of a table of steps, its header first."""
    draw = Random(number)
    body = [
        (
            f"r{run}",
            str(time),
            draw.choice(("hall", "attic", "1", "2.5")),
            draw.choice(("up", "down")),
            draw.choice(("0", "1", "-0.5")),
            draw.choice(("", "key", "bell|key")),
            draw.choice(("true", "false")),
            draw.choice(("", "key")),
        )
        for run in range(draw.randint(1, 3))
        for time in range(draw.randint(1, 5))
    ]
    return (HEADER, *body)


def _asked(draw: Random) -> dict[str, Any]:
    """Return which columns to read as what, mostly as they are meant."""
    names = HEADER
    meant = dict(zip(ROLES, names, strict=True))
    del meant[draw.choice(("label", "next_label"))]
    asked: dict[str, Any] = {role: name for role, name in meant.items() if draw.random() < 0.9}
    if draw.random() < 0.1:
        asked[draw.choice(ROLES)] = draw.choice(
            (*names, "none such", ["room", "move"], 3, "", None)
        )
    if draw.random() < 0.1:
        asked["outputs"] = draw.choice((["room"], {"x": "paid"}, ["room", "room"], "run"))
    if draw.random() < 0.2:
        asked["label_separator"] = draw.choice(("|", "", "||", "é"))
    if draw.random() < 0.2:
        asked["final_observation"] = draw.choice(TEXTS)
    if draw.random() < 0.05:
        asked["delimiter"] = draw.choice((",", ";", "", "ab", "\n", '"', "é", "\0"))
    return asked


def csv_file(draw: Random) -> Files:
    """Return a CSV file, damaged, and what to read in it."""
    table = [list(row) for row in rows(draw.randrange(VARIETY))]
    for _ in range(draw.choice((0, 1, 2))):
        row = draw.choice(table)
        if row:
            row[draw.randrange(len(row))] = draw.choice(TEXTS)
        if draw.random() < 0.2:
            row.append("more")
    stream = io.StringIO()
    csv.writer(
        stream, delimiter=draw.choice(",;\t"), lineterminator=draw.choice(("\n", "\r\n"))
    ).writerows(table)
    data = stream.getvalue().encode()
    if draw.random() < 0.5:
        data = damaged(draw, data)
    if draw.random() < 0.05:
        data = draw.choice((b"\xff\xfe", b"\xef\xbb\xbf", draw.choice(TOKENS))) + data
    return {"table.csv": data, "asked": msgspec.json.encode(_asked(draw))}


def parquet_file(draw: Random) -> Files:
    """Return a Parquet file in a layout of its own, damaged, and what to read in it."""
    header, *body = rows(draw.randrange(VARIETY))
    columns = {name: [row[at] or None for row in body] for at, name in enumerate(header)}
    table = pa.table(columns)
    for name, kind in (("time", pa.int64()), ("paid", pa.float64()), ("over", pa.bool_())):
        place = header.index(name)
        table = table.set_column(place, name, table[name].cast(kind))
    if draw.random() < 0.8:
        table = damaged_table(draw, table)
    return {"table.parquet": parquet_bytes(table), "asked": msgspec.json.encode(_asked(draw))}


def _wanted(path: Path) -> tuple[Path, dict[str, Any]]:
    asked = msgspec.json.decode((path / "asked").read_bytes())
    return next(path.glob("table.*")), asked


def read_table(path: Path) -> None:
    """Read a table of steps."""
    table, asked = _wanted(path)
    assert rs.read_table(table, **asked).digest


def read_log(path: Path) -> None:
    """Read a table as the log of a system."""
    table, asked = _wanted(path)
    given = {name: asked[name] for name in ("episode", "order", "delimiter") if name in asked}
    columns = asked.get("observation", "room"), asked.get("action", "move")
    assert rs.read_log(table, input=columns[1], output=columns[0], **given).digest


def scan_table(path: Path) -> None:
    """Scan a Parquet table in pieces."""
    table, asked = _wanted(path)
    asked.pop("delimiter", None)
    for traces in rs.scan_traces(table, **asked):
        assert traces.steps >= 0


TARGETS = (
    Reader("csv", csv_file, read_table),
    Reader("csv-log", csv_file, read_log),
    Reader("parquet-table", parquet_file, read_table),
    Reader("scanned-table", parquet_file, scan_table),
)
