"""What rows are ordered by is read in the first pass; rows in order need it no more."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import resolvent as rs
from resolvent.traces.scan.row_groups import StoredFiles
from worlds import random_world

WORLD = random_world(1, size=9, labels=3, tm_states=3)
LOG = {
    "run": [1, 1, 1, 2, 2],
    "time": [10, 20, 30, 5, 7],
    "input": ["coin", "push", "push", "push", "coin"],
    "answer": [0, 1, 0, 0, 0],
}
ROLES = {"episode": "run", "order": "time", "input": "input", "output": "answer"}


@pytest.fixture
def columns_read(monkeypatch):
    read = []
    real = StoredFiles.read

    def noted(self, blocks, names, *rest):
        read.append(set(names))
        return real(self, blocks, names, *rest)

    monkeypatch.setattr(StoredFiles, "read", noted)
    return read


def scanned_log(path, order):
    pq.write_table(pa.table(LOG).take(order), path)
    return rs.scan_traces(path, **ROLES)


def test_rows_in_order_are_read_without_it_the_next_time(tmp_path, columns_read):
    scanned = scanned_log(tmp_path / "log.parquet", [0, 1, 2, 3, 4])
    first = scanned.read(0)
    assert "time" in columns_read[-1]
    assert scanned.read(0) == first == next(iter(scanned))
    assert [names for names in columns_read if "time" in names] == columns_read[:1]


def test_rows_out_of_order_are_sorted_every_time(tmp_path, columns_read):
    scanned = scanned_log(tmp_path / "log.parquet", [1, 0, 2, 4, 3])
    straight = scanned_log(tmp_path / "straight.parquet", [0, 1, 2, 3, 4])
    assert scanned.read(0) == scanned.read(0) == straight.read(0)
    assert all("time" in names for names in columns_read[:2])


def test_a_column_that_orders_and_answers_is_still_read(tmp_path, columns_read):
    pq.write_table(pa.table(LOG), tmp_path / "log.parquet")
    scanned = rs.scan_traces(tmp_path / "log.parquet", **{**ROLES, "output": ["answer", "time"]})
    assert scanned.read(0) == scanned.read(0)
    assert "time" in columns_read[-1]


def test_our_own_files_are_read_without_steps_the_next_time(tmp_path, columns_read):
    traces = WORLD.rollouts(20, seed=0)
    traces.save(tmp_path / "traces.parquet")
    scanned = rs.scan_traces(tmp_path)
    assert scanned.read(0) == scanned.read(0) == traces
    assert ["step" in names for names in columns_read] == [True, False]
    table = traces.to_arrow()
    pq.write_table(table.take(list(range(table.num_rows))[::-1]), tmp_path / "traces.parquet")
    scanned = rs.scan_traces(tmp_path)
    assert scanned.read(0) == scanned.read(0) == traces
    assert "step" in columns_read[-1]


def test_errors_name_the_step_in_any_case(tmp_path):
    table = WORLD.rollouts(3, seed=0).to_arrow()
    seen = table["observation"].to_pylist()
    seen[1] = None
    place = table.column_names.index("observation")
    pq.write_table(
        table.set_column(place, "observation", pa.array(seen)), tmp_path / "traces.parquet"
    )
    with pytest.raises(rs.TraceError, match=r"episode 0, step 1: the observation is null"):
        rs.scan_traces(tmp_path).read(0)
