"""What is kept between runs: records of the paper's experiments, and results under keys."""

import tempfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np

from fuzz.mutations import damaged, damaged_document, odd_value
from fuzz.targets import Files, Reader
from fuzz.trace_readers import some_traces
from resolvent._util.cache import Store, pack
from resolvent._util.cache import unpack as unpack_value
from resolvent.paper.reproduce import Results
from resolvent.preprocess.timing import LabelTiming

KEY = "ab12" * 16
ABOUT = {"format": 1, "settings": {"repetitions": 3}, "command": "resolvent reproduce"}
RECORD = {
    "experiment": "baselines",
    "setting": "5x5",
    "method": "ours",
    "seconds": 0.5,
    "states": [2, 2],
}


def records(draw: Random) -> Files:
    """Return a folder of records, one of which is damaged."""
    files = {
        "about.json": msgspec.json.encode(ABOUT),
        "runs/a.json": msgspec.json.encode(RECORD),
        "runs/b/c.json": msgspec.json.encode(RECORD),
    }
    name = draw.choice(list(files))
    files[name] = damaged_document(draw, ABOUT if name == "about.json" else RECORD)
    return files


@cache
def packed(number: int) -> bytes:
    """Return plain data of all kinds as bytes."""
    values = (
        some_traces(number),
        np.arange(6, dtype=np.int16).reshape(2, 3),
        {"a": (1, 2.5, frozenset("b")), 3: [None, True, 10**30]},
        LabelTiming.CURRENT,
    )
    return pack(values, (LabelTiming,))


def packing(draw: Random) -> Files:
    """Return packed data, damaged in its bytes or its structure."""
    if draw.random() < 0.5:
        return {"packed": damaged(draw, packed(draw.randrange(8)))}
    value = msgspec.msgpack.decode(packed(draw.randrange(8)))
    return {"packed": _msgpack(_changed(draw, value))}


def _changed(draw: Random, value: Any) -> Any:
    if isinstance(value, list) and value and draw.random() < 0.85:
        place = draw.randrange(len(value))
        return [*value[:place], _changed(draw, value[place]), *value[place + 1 :]]
    tags = (
        "int",
        "array",
        "tuple",
        "list",
        "frozenset",
        "Vocabulary",
        "TraceSet",
        "enum",
        "record",
    )
    return draw.choice((odd_value(draw), [draw.choice(tags), value], draw.choice(tags), []))


def _msgpack(value: Any) -> bytes:
    try:
        return msgspec.msgpack.encode(value)
    except (OverflowError, RecursionError):
        return b"\xc1"


@cache
def stored_file() -> bytes:
    """Return a file of a store as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        Store(folder).put(KEY, b"a result")
        return next(Path(folder).rglob("*.cache")).read_bytes()


def cache_file(draw: Random) -> Files:
    """Return a damaged file of a store."""
    return {f"store/{KEY[:2]}/{KEY}.cache": damaged(draw, stored_file())}


def read_records(path: Path) -> None:
    """Read a folder of records."""
    assert Results.read(path).lines()


def unpack(path: Path) -> None:
    """Unpack data."""
    unpack_value((path / "packed").read_bytes(), (LabelTiming,))


def get(path: Path) -> None:
    """Take something out of a store."""
    assert Store(str(path / "store")).get(KEY) in (None, b"a result")


TARGETS = (
    Reader("records", records, read_records),
    Reader("packed", packing, unpack, (ValueError,)),
    Reader("cache", cache_file, get),
)
