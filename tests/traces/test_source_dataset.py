import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import resolvent as rs
from worlds import random_world

WORLD = random_world(1, size=9, labels=3, tm_states=3)


@pytest.fixture
def folder(tmp_path):
    for number in range(5):
        WORLD.rollouts(4, number).save(tmp_path / f"{number}.parquet")
    (tmp_path / "notes.txt").write_text("not traces")
    return tmp_path


def test_shards_come_in_the_order_of_names_at_each_pass(folder):
    shards = rs.scan_traces(folder)
    expected = [WORLD.rollouts(4, number) for number in range(5)]
    assert [*shards] == [*shards] == expected
    assert shards.read(3) == expected[3]
    assert len(shards) == 5
    assert shards.rows == sum(traces.steps + len(traces) for traces in expected)
    assert "5 files" in repr(shards)


def test_no_reader_stays_after_an_interrupted_pass(folder):
    before = threading.active_count()
    for traces in rs.scan_traces(folder):
        assert len(traces) == 4
        break
    assert threading.active_count() <= before + 2  # idle readers end with the iterator
    del traces


def test_an_unreadable_shard_is_named(folder):
    content = (folder / "2.parquet").read_bytes()
    shards = rs.scan_traces(folder)
    (folder / "2.parquet").write_bytes(content[: len(content) // 2])
    with pytest.raises(rs.TraceError, match=r"2\.parquet: the file has changed since .* bytes"):
        list(shards)
    with pytest.raises(rs.TraceError, match=r"2\.parquet: cannot be read as Parquet"):
        rs.scan_traces(folder)


@pytest.mark.parametrize("kind", ["missing", "file", "empty"])
def test_locations_that_cannot_be_scanned(tmp_path, kind):
    path = tmp_path / "traces"
    if kind == "file":
        path.write_text("{}")
    elif kind == "empty":
        path.mkdir()
    message = {
        "missing": "does not exist",
        "file": "is not a Parquet file: read it with read_traces",
        "empty": r"without \.parquet files",
    }
    with pytest.raises(rs.TraceError, match=message[kind]):
        rs.scan_traces(path)


def test_columns_of_a_folder_are_named(tmp_path):
    rows = {
        "episode": [0, 0], "step": [0, 1], "observation": [4, 5], "label": [None, "key"],
        "action": ["go", None], "cost": [7, None],
    }  # fmt: skip
    for name in "ab":
        pq.write_table(pa.table(rows), tmp_path / f"{name}.parquet")
    assert [list(traces.columns) for traces in rs.scan_traces(tmp_path)] == [[], []]
    named = rs.scan_traces(tmp_path, columns=["cost"])
    assert [traces[0].columns for traces in named] == [{"cost": (7,)}, {"cost": (7,)}]
    with pytest.raises(rs.TraceError, match=r"a\.parquet: .* no column `cots`: there is cost"):
        rs.scan_traces(tmp_path, columns=["cots"]).read(0)


@pytest.mark.parametrize(
    "location",
    [3, b"logs", np.array(3), "9" * 400, "a\0b", [], [3]],
    ids=lambda location: repr(location)[:12],
)
def test_values_that_are_no_location(location):
    with pytest.raises(rs.TraceError):
        rs.scan_traces(location)


@pytest.mark.parametrize("given", [{"columns": 5}, {"damaged": np.array([])}, {"damaged": None}])
def test_wrong_options(folder, given):
    with pytest.raises(rs.ResolventError):
        rs.scan_traces(folder, **given)


def test_info_names_shards_and_states_their_rows(folder):
    dataset = rs.scan_traces(folder)
    infos = [dataset.info(number) for number in range(5)]
    assert [info.name for info in infos] == dataset.files
    assert sum(info.rows for info in infos) == dataset.rows
    assert all(info.skipped is None for info in infos)
