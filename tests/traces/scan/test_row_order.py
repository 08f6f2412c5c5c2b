"""What was found when a piece was read first is not looked for again, whoever reads it next."""

import pickle
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import resolvent as rs
from resolvent._util.parallel import Threads
from resolvent.replay import Corpus
from resolvent.replay.keeping import with_cache
from resolvent.traces.scan import shards
from resolvent.traces.scan.row_groups import StoredFiles
from resolvent.traces.source import RowOrder

WORDS = {"episode": "run", "order": "time", "input": "event", "output": "answer"}
LENGTHS = [3, 4, 5, 41, 8, 6, 7, 12, 9]
COLUMNS = {"run", "event", "answer"}
BEGINNING = {0, 1, 5, 6, 7, 8}
"""The pieces in which runs begin."""


class Elsewhere(Threads):
    """Workers that know nothing but what they are sent: each piece is done by a copy."""

    def together(self, work, pieces, combine, **more):
        sent = pickle.dumps(work)

        def by_copy(piece):
            return pickle.loads(sent)(piece)  # noqa: S301

        return super().together(by_copy, pieces, combine, **more)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    monkeypatch.setattr(shards, "SHARD_ROWS", 10)


@pytest.fixture
def reads(monkeypatch):
    """What is read: which columns, from which row group on, and how many first rows if not all."""
    found = []
    original = StoredFiles.read

    def noted(self, blocks, names, rows=None):
        found.append((set(names), blocks[0].group, rows))
        return original(self, blocks, names, rows)

    monkeypatch.setattr(StoredFiles, "read", noted)
    return found


@pytest.fixture(params=["numbers", "texts", "no statistics", "unordered"])
def path(request, tmp_path):
    """Runs over pieces of ten rows, which footers tell apart or do not."""
    ids = np.arange(len(LENGTHS))
    if request.param == "unordered":
        ids = np.random.default_rng(1).permutation(1000)[: len(LENGTHS)]
    run = np.repeat(ids, LENGTHS)
    table = pa.table(
        {
            "run": run if request.param != "texts" else [f"run {one}" for one in run],
            "time": np.arange(len(run)) * 7,
            "event": [("coin", "push")[row * row % 3 == 1] for row in range(len(run))],
            "answer": np.arange(len(run)) % 4,
        }
    )
    path = tmp_path / f"{request.param}.parquet"
    statistics = request.param != "no statistics"
    pq.write_table(table, path, row_group_size=10, write_statistics=statistics)
    return path


def scanned(path):
    return rs.scan_traces(path, **WORDS)


def test_no_piece_reads_the_episodes_of_all_rows_of_another(path, reads):
    folder = scanned(path)
    reads.clear()  # without bounds that tell, episodes are read when files are opened, and once
    traces = [folder.read(number) for number in range(len(folder))]
    assert sum(one.steps for one in traces) == sum(LENGTHS)
    assert sorted(len(trace) for one in traces for trace in one) == sorted(LENGTHS)
    whole = [group for _, group, rows in reads if rows is None]
    assert len(whole) == len({*whole})


def test_how_rows_stand(path):
    folder = scanned(path)
    for number in range(len(folder)):
        folder.read(number)
    # 3 4 3|2 8|10|10|10|3 7|1 6 3|4 6|6 4|5: those before the first stroke's run ends.
    fronts = [0, 2, 10, 10, 10, 3, 1, 4, 6, 5]
    assert [folder._row_orders[number].leading_rows for number in range(len(folder))] == fronts
    ordered = {number for number, order in folder._row_orders.items() if order.is_sorted}
    assert ordered <= BEGINNING
    if "unordered" not in path.name:
        assert ordered == BEGINNING


@pytest.mark.parametrize("workers", [Threads(2), Elsewhere(2)], ids=["threads", "elsewhere"])
def test_the_second_pass_reads_rows_and_nothing_else(path, reads, workers):
    folder = scanned(path)
    expected = [folder.read(number) for number in range(len(folder))]
    folder = scanned(path)
    corpus = Corpus(folder, workers=workers)
    assert sorted(folder._row_orders) == [*range(len(folder))]
    reads.clear()
    assert [corpus.shards.read(number) for number in range(len(folder))] == expected
    assert all(names - {"time"} == COLUMNS for names, _, _ in reads)
    ordered = {number for number, order in folder._row_orders.items() if order.is_sorted}
    timed = {group for names, group, rows in reads if rows is None and "time" in names}
    assert timed == BEGINNING - ordered
    assert [group for _, group, rows in reads if rows is None] == sorted(BEGINNING)


def test_what_is_kept_says_it_too(path, tmp_path):
    first, again = scanned(path), scanned(path)
    for folder in (first, again):
        Corpus(folder, workers=with_cache(Elsewhere(2), str(tmp_path / "kept")))
    assert first._row_orders == again._row_orders
    assert len(again._row_orders) == len(again)
    assert {type(one) for one in again._row_orders.values()} == {RowOrder}


def test_bounds_that_are_wider_than_what_is_there(tmp_path):
    """Other writers may shorten texts, so that pieces seem to share what neither has."""
    run = ["a", "b", "b", "d", "d", "e", "c", "c", "c", "c", "g", "g", "h"]
    table = pa.table({"run": run, "time": range(13), "event": ["coin"] * 13, "answer": [0] * 13})
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=10)
    expected = [*scanned(tmp_path / "log.parquet")]
    wide = scanned(tmp_path / "log.parquet")
    assert not wide._shards.continues.any()
    wide._shards = replace(wide._shards, continues=np.array([False, True]), shared=(None, ("f",)))
    assert [*wide] == expected
    assert [len(one) for one in expected] == [5, 2]
