import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import resolvent as rs
from resolvent.traces.places.chunk_types import check_chunk_types

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
def test_what_arrow_writes_does_not_contradict_itself(tmp_path, name, index, version):
    path = tmp_path / "x.parquet"
    table = pa.table(TABLES[name])
    options = {"write_page_index": index, "version": version, "store_schema": index}
    pq.write_table(table, path, row_group_size=1, **options)
    with pa.OSFile(str(path)) as file:
        check_chunk_types(file)


def test_a_row_group_with_other_types_is_refused():
    with (
        pa.OSFile(str(CONTRADICTING)) as file,
        pytest.raises(rs.DamagedFile, match=r"^row group 0 has columns of other types"),
    ):
        check_chunk_types(file)


def test_a_file_that_ends_arrow_ends_nothing_here():
    """In a process of its own: Arrow would take this one with it."""
    code = f"import resolvent as rs; rs.scan_traces({str(CONTRADICTING.parent)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "DamagedFile" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("place", range(40, 400, 7))
def test_any_footer_is_understood_or_refused(tmp_path, place):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table(TABLES["plain"]), path)
    data = bytearray(path.read_bytes())
    data[-place] ^= 0xFF
    with suppress(rs.DamagedFile):
        check_chunk_types(pa.BufferReader(bytes(data)))
