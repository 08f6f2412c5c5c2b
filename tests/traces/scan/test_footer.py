import subprocess
import sys
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from resolvent.traces.scan.footer import are_in_sequence, chunks_of

CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus" / "scanned-folder"
CONTRADICTING = CORPUS / "types-that-contradict" / "part" / "a0.parquet"

TABLES = {
    "plain": {"a": [1, 2, 3], "b": ["x", None, "z"], "c": [0.5, 1.5, None], "d": [True] * 3},
    "nested": {
        "list": [[1], [2, 3], []],
        "struct": [{"x": 1, "y": "a"}, {"x": 2, "y": None}, None],
        "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "deep": [[{"z": [1.0]}], [], None],
    },
    "many": {f"column {number}": [number] * 3 for number in range(200)},
    "odd": {
        "time": pa.array([1, 2, 3], pa.timestamp("us", tz="UTC")),
        "bytes": [b"\0" * 300, b"", None],
        "decimal": pa.array([1, 2, 3]).cast(pa.decimal128(30, 2)),
        "coded": pa.array(["a", "b", "a"]).dictionary_encode(),
    },
}


@pytest.mark.parametrize("version", ["1.0", "2.6"])
@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_what_is_told_is_what_arrow_tells(tmp_path, name, index, version):
    path = tmp_path / "x.parquet"
    table = pa.table(TABLES[name])
    options = {"write_page_index": index, "version": version, "store_schema": index}
    pq.write_table(table, path, row_group_size=2, **options)
    opened = pq.ParquetFile(path)
    with pa.OSFile(str(path)) as file:
        groups = chunks_of(file)
    assert [len(one) for one in groups] == [opened.metadata.num_columns] * 2
    known = 0
    for group, chunks in enumerate(groups):
        for place, chunk in enumerate(chunks):
            column = opened.metadata.row_group(group).column(place)
            if column.path_in_schema not in opened.schema_arrow.names:
                continue
            found = chunk.bounds(opened.schema_arrow.field(column.path_in_schema).type)
            told = column.statistics
            if found is not None:
                assert found == (told.min, told.max)
                assert told.null_count == 0
                known += 1
    assert known or name == "nested"


def test_every_plain_column_is_known(tmp_path):
    path = tmp_path / "x.parquet"
    columns = {
        "whole": pa.array([3, -5]), "small": pa.array([3, -5], pa.int8()),
        "unsigned": pa.array([3, 2**64 - 1], pa.uint64()), "text": pa.array(["é", "a"]),
        "bytes": pa.array([b"b", b"a"]), "day": pa.array([date(2026, 1, 2), date(1960, 1, 1)]),
        "time": pa.array([datetime(2026, 1, 2, 3), datetime(1960, 1, 1)]),
    }  # fmt: skip
    table = pa.table(columns)
    pq.write_table(table, path)
    with pa.OSFile(str(path)) as file:
        [chunks] = chunks_of(file)
    for name, chunk in zip(columns, chunks, strict=True):
        values = sorted(columns[name].to_pylist())
        assert chunk.bounds(table.schema.field(name).type) == (values[0], values[-1])


def test_a_file_that_ends_arrow_ends_nothing_here():
    """In a process of its own: Arrow would take this one with it."""
    code = f"import resolvent as rs; rs.scan_traces({str(CONTRADICTING)!r}).read_all()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "DamagedFile" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("place", range(9, 900, 7))
def test_any_footer_is_understood_or_refused(tmp_path, place):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table(TABLES["plain"]), path)
    data = bytearray(path.read_bytes())
    data[-place] ^= 0xFF
    with suppress(pa.ArrowInvalid):
        chunks_of(pa.BufferReader(bytes(data)))


def test_shards_in_sequence_share_episodes_with_neighbors_only():
    assert are_in_sequence([((1,), (4,)), ((4,), (6,)), ((9,), (9,))])
    assert not are_in_sequence([((1,), (4,)), ((9,), (9,)), ((4,), (6,))])
