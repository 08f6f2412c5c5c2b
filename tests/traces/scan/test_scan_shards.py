"""Pieces of large files: whole episodes, wherever row groups and files are cut."""

import pickle
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import resolvent as rs
from resolvent.traces.scan import shards

WORDS = {"episode": "run", "order": "time", "input": "event", "output": "answer"}


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    monkeypatch.setattr(shards, "SHARD_ROWS", 10)


def log_of(lengths, ids=None):
    """Runs of so many rows, one after the other."""
    ids = list(range(len(lengths))) if ids is None else ids
    run = [one for one, length in zip(ids, lengths, strict=True) for _ in range(length)]
    time = [step for length in lengths for step in range(length)]
    random = np.random.default_rng(sum(lengths))
    return pa.table(
        {
            "run": run,
            "time": time,
            "event": [("coin", "push")[one] for one in random.integers(2, size=len(run))],
            "answer": random.integers(3, size=len(run)),
            "note": [f"note {row}" for row in range(len(run))],
        }
    )


def one_by_one(traces):
    """Traces as plain tuples, in an order that does not depend on the pieces."""
    return sorted(
        (one.actions, tuple(sorted(map(sorted, one.labels))), tuple(one.columns["answer"]))
        for one in traces
    )


def written(table, path, group, **options):
    pq.write_table(table, path, row_group_size=group, **options)


@pytest.mark.parametrize("group", [1, 2, 3, 7, 10, 11, 64])
@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("texts", [False, True])
def test_pieces_hold_the_traces_of_the_whole_table(tmp_path, group, statistics, texts):
    # 41 rows of one run cross four pieces and more, and some of these begin no run.
    lengths = [3, 1, 9, 10, 41, 2, 2, 20, 1]
    ids = [f"run {number}" for number in range(9)] if texts else None
    table = log_of(lengths, ids)
    written(table, tmp_path / "log.parquet", group, write_statistics=statistics)
    scanned = rs.scan_traces(tmp_path / "log.parquet", **WORDS)
    whole = rs.read_log(table, **WORDS)
    assert len(scanned) > 1 or group == 64
    backwards = [scanned.read(number) for number in reversed(range(len(scanned)))]
    assert one_by_one(one for traces in backwards for one in traces) == one_by_one(whole)
    assert [len(one) for one in scanned] == [len(one) for one in reversed(backwards)]
    assert [len(trace) for trace in scanned.read_all()] == lengths


def test_a_piece_is_read_alone_by_a_copy(tmp_path):
    written(log_of([7] * 20), tmp_path / "log.parquet", 4)
    scanned = rs.scan_traces(tmp_path / "log.parquet", **WORDS)
    sent = pickle.dumps(scanned)
    assert len(sent) < 10_000
    assert [pickle.loads(sent).read(5)] == [scanned.read(5)]  # noqa: S301
    assert scanned.name(5) == f"{tmp_path}/log.parquet, row group 10 to 11"
    assert "1 files, 18 pieces, 140 rows" in repr(scanned)


def test_only_columns_that_are_needed_are_read(tmp_path, monkeypatch):
    read = []
    actual = pq.ParquetFile.read_row_groups

    def counting(self, groups, columns=None, **options):
        read.extend(columns)
        return actual(self, groups, columns, **options)

    written(log_of([7] * 20), tmp_path / "log.parquet", 4)
    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", counting)
    list(rs.scan_traces(tmp_path / "log.parquet", **WORDS))
    assert set(read) == {"run", "time", "event", "answer"}


def test_runs_go_on_in_the_next_file(tmp_path):
    table = log_of([5, 30, 4])
    for number, (start, end) in enumerate([(0, 8), (8, 20), (20, 31), (31, 39)]):
        written(table.slice(start, end - start), tmp_path / f"{number}.parquet", 6)
    scanned = rs.scan_traces(tmp_path, **WORDS)
    assert one_by_one(scanned.read_all()) == one_by_one(rs.read_log(table, **WORDS))
    # The second run begins in the first file and ends in the last, where the third begins.
    assert [len(one) for one in scanned] == [2, 0, 0, 0, 0, 1]


@pytest.mark.parametrize("statistics", [True, False])
def test_a_run_in_two_files_that_do_not_follow_each_other(tmp_path, statistics):
    for number, ids in enumerate([[1, 2], [3, 1]]):
        path = tmp_path / f"{number}.parquet"
        written(log_of([5, 5], ids), path, 10, write_statistics=statistics)
    with pytest.raises(rs.TraceError, match=r"0\.parquet, row 0 and .*1\.parquet, row 5, with"):
        rs.scan_traces(tmp_path, **WORDS)
    own = rs.scan_traces(tmp_path, **{**WORDS, "episode": ["__filename", "run"]})
    assert [len(one) for one in own] == [2, 2]


def test_machines_do_not_depend_on_the_pieces(tmp_path):
    states = {("coin", 0): (1, "thanks"), ("coin", 1): (1, "thanks"), ("push", 0): (0, "locked")}
    states["push", 1] = (0, "open")
    random = np.random.default_rng(5)
    rows = {"run": [], "event": [], "answer": []}
    for run in range(40):
        state = 0
        for event in random.choice(["coin", "push"], size=int(random.integers(1, 25))):
            state, answer = states[str(event), state]
            for name, value in zip(rows, (run, str(event), answer), strict=True):
                rows[name].append(value)
    table = pa.table(rows)
    words = {"episode": "run", "input": "event", "output": "answer"}
    expected = rs.infer(rs.read_log(table, **words)).machines
    for group in (3, 10, 500):
        path = tmp_path / f"{group}.parquet"
        written(table, path, group)
        assert rs.infer(rs.scan_traces(path, **words)).machines == expected
    assert expected["answer"].states == 2


def test_our_own_files_are_cut_between_episodes(tmp_path):
    traces = rs.TraceSet(
        rs.Trace(list(range(length + 1)), [None] * (length + 1), ["go"] * length, [0.5] * length)
        for length in (3, 12, 30, 1, 1, 8)
    )
    table = traces.to_arrow()
    for group in (2, 5, 11):
        path = tmp_path / f"{group}.parquet"
        pq.write_table(table, path, row_group_size=group)
        scanned = rs.scan_traces(path)
        assert len(scanned) > 3
        assert scanned.read_all() == traces
    # In a folder each file has its own episodes, even where their numbers are the same.
    together = rs.scan_traces(tmp_path)
    assert len(together.read_all()) == 18


SCATTERED = r"stand apart, at .*log\.parquet, row \d+ and .*log\.parquet, row \d+, with rows"


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("ids", [[1, 2, 3, 1], [1, 2, 3, 2], [3, 1, 1, 3], [2, 2, 9, 1, 2]])
def test_scattered_runs_are_refused(tmp_path, ids, statistics):
    lengths = [12] * len(ids)
    table = log_of(lengths, ids).drop_columns(["time"])
    written(table, tmp_path / "log.parquet", 6, write_statistics=statistics)
    words = {key: value for key, value in WORDS.items() if key != "order"}
    with pytest.raises(rs.TraceError, match=SCATTERED) as caught:
        list(rs.scan_traces(tmp_path / "log.parquet", **words))
    assert "\n" not in str(caught.value)
    assert "sort the rows" in str(caught.value)


def test_a_run_that_touches_the_next_piece_but_not_its_beginning_is_refused(tmp_path):
    # By their bounds 1…5 and 5…9 share at most 5, which stands in the midst of both.
    run = [1, 1, 5, 5, 4, 4, 4, 4, 3, 3, 9, 9, 5, 5, 6, 6, 7, 7, 8, 8]
    table = log_of([1] * 20, run).drop_columns(["time"])
    words = {key: value for key, value in WORDS.items() if key != "order"}
    written(table, tmp_path / "log.parquet", 10)
    with pytest.raises(rs.TraceError, match=SCATTERED):
        list(rs.scan_traces(tmp_path / "log.parquet", **words))


def test_a_run_in_two_pieces_but_not_where_they_meet_is_refused(tmp_path):
    # 5 is in the first row group of a piece of two, and in the next piece.
    run = [1, 1, 1, 5, 5, 2, 3, 3, 3, 3, 5, 5, 6, 6, 7]
    table = log_of([1] * 15, run).drop_columns(["time"])
    words = {key: value for key, value in WORDS.items() if key != "order"}
    written(table, tmp_path / "log.parquet", 5)
    with pytest.raises(rs.TraceError, match=r"row 3 and .* row 10, with"):
        rs.scan_traces(tmp_path / "log.parquet", **words).read(0)


def test_rows_may_be_in_any_order_within_a_piece(tmp_path):
    table = log_of([5, 5])
    shuffled = table.take([9, 3, 1, 7, 0, 8, 2, 5, 4, 6])
    written(shuffled, tmp_path / "log.parquet", 10)
    scanned = rs.scan_traces(tmp_path / "log.parquet", **WORDS)
    assert scanned.read(0) == rs.read_log(table, **WORDS)


def test_one_run_that_is_all_of_a_large_file_is_refused(tmp_path):
    written(log_of([40]), tmp_path / "log.parquet", 10)
    with pytest.raises(rs.OptionError, match=r"log\.parquet.* name the column .*__filename"):
        rs.scan_traces(tmp_path / "log.parquet", input="event", output="answer")


def test_what_a_table_lacks_is_said_once(tmp_path):
    rows = {"run": [1, 1, 2, 2], "see": [1, 2, 3, 4], "do": ["go"] * 4}
    for name in "ab":
        first = pa.array([f"{name}{run}" for run in rows["run"]])
        pq.write_table(pa.table({**rows, "run": first}), tmp_path / f"{name}.parquet")
    scanned = rs.scan_traces(tmp_path, episode="run", observation="see", action="do")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [len(one) for one in scanned] == [len(one) for one in scanned] == [2, 2]
    assert len(caught) == 1
    assert "a.parquet: the last row is a step" in str(caught[0].message)
