"""Files of traces: JSON lines, the paper's lines, compressed ones, and Parquet."""

import gzip
import io
import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import resolvent as rs
from fuzz.mutations import (
    TEXTS,
    damaged,
    damaged_document,
    damaged_json,
    json_bytes,
    odd_value,
)
from fuzz.targets import Files, Reader
from resolvent.traces.io.json_lines import json_lines, paper_lines

VARIETY = 48
"""How many different valid inputs each reader starts from."""


_OBSERVATIONS: tuple[tuple[Any, ...], ...] = (
    ("hall", "attic", "", "é"),
    (0, 1, 2, -3),
    (0.5, 2.5, -1.0, 1e300),
    ((1, 2), (2, 2), (0, 0), (3, 1)),
    (True, False, True, False),
)


@cache
def some_traces(number: int, plain: bool = False) -> rs.TraceSet:
    """Return a few short traces of a small random world; `plain` ones have rewards alone."""
    draw = Random(number)
    observations = draw.choice(_OBSERVATIONS)
    labels: list[Any] = [None, "key", ["key", "door"], "bell"]
    if plain:
        labels = [None, "key", "bell"]
    names = draw.sample(["cost", "colour", "_x", "a b"], draw.randint(0, 2))
    traces = []
    for _ in range(draw.randint(1, 4)):
        steps = draw.randint(1, 6)
        state, seen, read, done, paid = 0, [observations[0]], [labels[0]], [], []
        for _ in range(steps):
            action = draw.choice(("up", "down"))
            happened = draw.randrange(len(labels))
            done.append(action)
            paid.append(float(state and action == "up"))
            state = (state + happened) % 2
            seen.append(observations[(state + happened) % len(observations)])
            read.append(labels[happened])
        columns = {} if plain else {name: [draw.choice(("b", "c")) for _ in done] for name in names}
        with_rewards = plain or number % 3 != 0
        traces.append(
            rs.Trace(
                seen, read, done, paid if with_rewards else None,
                terminated=draw.random() < 0.5, columns=columns,
            )
        )  # fmt: skip
    return rs.TraceSet(traces)


@cache
def episodes(number: int) -> list[Any]:
    """Return the lines of a file of traces as values."""
    return [json.loads(line) for line in json_lines(some_traces(number))]


@cache
def paper_episodes(number: int) -> list[Any]:
    """Return the lines of a file in the paper's format as values."""
    return [json.loads(line) for line in paper_lines(some_traces(number, plain=True))]


def damaged_lines(draw: Random, lines: list[Any]) -> bytes:
    """Return lines of which one is damaged, or all of the file."""
    if draw.random() < 0.3:
        return damaged(draw, b"\n".join(json_bytes(draw, line) for line in lines) + b"\n")
    place = draw.randrange(len(lines))
    written = [
        damaged_document(draw, line) if number == place else json_bytes(draw, line)
        for number, line in enumerate(lines)
    ]
    return b"\n".join(written) + draw.choice((b"\n", b"", b"\n\n"))


def jsonl(draw: Random) -> Files:
    """Return JSON lines."""
    return {"traces": damaged_lines(draw, episodes(draw.randrange(VARIETY)))}


def paper(draw: Random) -> Files:
    """Return the paper's lines."""
    return {"traces": damaged_lines(draw, paper_episodes(draw.randrange(VARIETY)))}


def compressed(draw: Random) -> Files:
    """Return lines of either kind, compressed, damaged before that or after it."""
    lines = draw.choice((episodes, paper_episodes))(draw.randrange(VARIETY))
    after = draw.random() < 0.6
    data = b"".join(json_bytes(draw, one) + b"\n" for one in lines)
    if not after:
        data = damaged_lines(draw, lines)
    packed = gzip.compress(data, 1, mtime=0) if draw.random() < 0.5 else _zstd(data)
    return {"traces": damaged(draw, packed) if after else packed}


def _zstd(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, codec="zstd", asbytes=True)
    return packed


@cache
def parquet_table(number: int) -> Any:
    """Return traces as the table that is written to Parquet."""
    return some_traces(number).to_arrow()


@cache
def parquet_file(number: int) -> bytes:
    """Return traces as a Parquet file."""
    return parquet_bytes(parquet_table(number))


def parquet_bytes(table: Any, **options: Any) -> bytes:
    """Return a table as a Parquet file."""
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return stream.getvalue()


TYPES = (
    pa.int8(), pa.uint64(), pa.float16(), pa.float64(), pa.bool_(), pa.string(), pa.large_string(),
    pa.binary(), pa.null(), pa.date32(), pa.timestamp("ns"), pa.time64("us"), pa.duration("s"),
    pa.decimal128(38, 4), pa.list_(pa.int64()), pa.list_(pa.string()), pa.large_list(pa.string()),
    pa.struct([("a", pa.int64())]), pa.map_(pa.string(), pa.int64()),
    pa.dictionary(pa.int32(), pa.string()), pa.list_(pa.list_(pa.string())), pa.binary(3),
)  # fmt: skip


def odd_column(draw: Random, rows: int) -> Any:
    """Return a column of any type and any values that it can have."""
    kind = draw.choice(TYPES)
    sources: list[Any] = [None, 0, 1, -1, 1.5, "a", "", b"abc", [1], ["a", ""], [], True]
    values = []
    for _ in range(rows):
        one = draw.choice(sources)
        try:
            pa.array([one], kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            one = None
        values.append(one)
    return pa.array(values, kind)


def damaged_table(draw: Random, table: Any) -> Any:
    """Return a table with one to three columns changed, left out, added or put elsewhere."""
    for _ in range(draw.choice((1, 1, 2, 3))):
        way = draw.randrange(8)
        columns = len(table.column_names)
        place = draw.randrange(columns) if columns else 0
        if way == 0 and columns > 1:
            table = table.remove_column(place)
        elif way == 1 and columns:
            names = list(table.column_names)
            names[place] = draw.choice((*TEXTS[:30], *names, "observation", "label"))
            table = table.rename_columns(names)
        elif way == 2:
            table = table.append_column(draw.choice(TEXTS), odd_column(draw, len(table)))
        elif way == 3:
            table = table.slice(draw.randint(0, len(table)), draw.randint(0, len(table)))
        elif way == 4 and len(table):
            table = table.take([draw.randrange(len(table)) for _ in range(len(table) + 2)])
        elif way == 5:
            table = table.replace_schema_metadata(_metadata(draw, table.schema.metadata))
        elif columns:
            name = table.column_names[place]
            table = table.set_column(place, name, odd_column(draw, len(table)))
    return table


def _metadata(draw: Random, known: dict[bytes, bytes] | None) -> dict[bytes, bytes]:
    held = dict(known or {})
    for name, value in list(held.items()):
        if draw.random() < 0.6:
            held[name] = damaged(draw, value)
    if draw.random() < 0.3:
        held[draw.choice(TEXTS).encode()] = json_bytes(draw, odd_value(draw))
    return held


def parquet(draw: Random) -> Files:
    """Return a Parquet file: of a damaged table, or with damaged bytes."""
    number = draw.randrange(VARIETY)
    if draw.random() < 0.4:
        return {"traces": damaged(draw, parquet_file(number))}
    table = damaged_table(draw, parquet_table(number))
    options: dict[str, Any] = {"compression": draw.choice(("none", "snappy", "zstd", "gzip"))}
    if draw.random() < 0.3:
        options["row_group_size"] = draw.randint(1, 3)
    return {"traces": parquet_bytes(table, **options)}


def folder(draw: Random) -> Files:
    """Return a folder of Parquet files, one of which may be damaged."""
    files = {
        f"part/{name}{one}.parquet": parquet_file(draw.randrange(VARIETY // 8))
        for one, name in enumerate(("a", "b", "k=1/c")[: draw.randint(1, 3)])
    }
    if draw.random() < 0.7:
        name = draw.choice(list(files))
        files[name] = parquet(draw)["traces"]
    if draw.random() < 0.2:
        files[f"part/{draw.choice(('x.txt', '.hidden', '_skip', 'y.parquet', 'z.jsonl'))}"] = b"?"
    return files


def read_one(path: Path) -> None:
    """Read traces, and look at all that a set of traces shows at once."""
    traces = rs.read_traces(path / "traces")
    assert len(traces.digest) == 64
    assert len(traces[0].actions) >= 1
    assert str(traces)


def read_again(path: Path) -> None:
    """Read traces, write them, and read them again: they are the same."""
    traces = rs.read_traces(path / "traces")
    traces.save(path / "again.jsonl")
    assert rs.read_traces(path / "again.jsonl") == traces


def scan(path: Path) -> None:
    """Scan a folder and go through it."""
    for traces in rs.scan_traces(path / "part"):
        assert traces.steps >= 0


def infer(path: Path) -> None:
    """Read traces, infer machines from them, and put them to every use."""
    traces = rs.read_traces(path / "traces")
    if traces.steps > 200:
        return
    result = rs.infer(traces)
    assert str(result)
    assert rs.diagnose(traces).findings is not None
    machines = result.machines
    machines.score(traces)
    result.machines.save(path / "machines.json")
    assert rs.load(path / "machines.json") == machines
    for machine in machines.values():
        assert machine.to_text()
        assert machine.to_mealy_dot(complete=True)
    if "reward" in machines and "transition" in machines:
        rs.plan(machines, traces)


def mild(draw: Random) -> Files:
    """Return lines that are damaged so little that most can still be read."""
    lines = list(draw.choice((episodes, paper_episodes))(draw.randrange(VARIETY)))
    place = draw.randrange(len(lines))
    lines[place] = damaged_json(draw, lines[place])
    return {"traces": b"".join(json_bytes(draw, one) + b"\n" for one in lines)}


TARGETS = (
    Reader("jsonl", jsonl, read_one),
    Reader("paper", paper, read_one),
    Reader("compressed", compressed, read_one),
    Reader("parquet", parquet, read_one),
    Reader("written-again", mild, read_again),
    Reader("scanned-folder", folder, scan),
    Reader("inference", mild, infer),
)
