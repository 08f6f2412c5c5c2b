"""Shards of large files: whole episodes, wherever row groups and files end."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import resolvent as rs
from resolvent._util.cache import Store
from resolvent._util.parallel import Threads
from resolvent.replay.corpus import Corpus
from resolvent.traces.scan import opening
from resolvent.traces.scan.storage import StoredFiles
from worlds import random_world

COLUMNS = {"episode": "run", "order": "time", "input": "event", "output": "answer"}
UNORDERED = {role: column for role, column in COLUMNS.items() if role != "order"}
WORLD = random_world(1, size=9, labels=3, tm_states=3)


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch):
    monkeypatch.setattr(opening, "SHARD_ROWS", 10)


def log_of(lengths, ids=None):
    """Return runs of these lengths, one after the other."""
    ids = list(range(len(lengths))) if ids is None else ids
    run = [name for name, length in zip(ids, lengths, strict=True) for _ in range(length)]
    time = [step for length in lengths for step in range(length)]
    random = np.random.default_rng(sum(lengths))
    return pa.table(
        {
            "run": run,
            "time": time,
            "event": [("coin", "push")[code] for code in random.integers(2, size=len(run))],
            "answer": random.integers(3, size=len(run)),
            "note": [f"note {row}" for row in range(len(run))],
        }
    )


def as_tuples(traces):
    """Return traces as plain tuples, in an order that does not depend on shards."""
    return sorted(
        (trace.actions, tuple(sorted(map(sorted, trace.labels))), tuple(trace.columns["answer"]))
        for trace in traces
    )


def write(table, path, rows_of_group, **options):
    pq.write_table(table, path, row_group_size=rows_of_group, **options)


# Episodes in several shards.


@pytest.mark.parametrize("rows_of_group", [1, 2, 3, 7, 10, 11, 64])
@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("texts", [False, True])
def test_shards_hold_the_traces_of_the_table(tmp_path, rows_of_group, statistics, texts):
    # 41 rows of one run cross four shards and more, and no run begins in some of these.
    lengths = [3, 1, 9, 10, 41, 2, 2, 20, 1]
    ids = [f"run {number}" for number in range(9)] if texts else None
    table = log_of(lengths, ids)
    write(table, tmp_path / "log.parquet", rows_of_group, write_statistics=statistics)
    dataset = rs.scan_traces(tmp_path / "log.parquet", **COLUMNS)
    assert len(dataset) > 1 or rows_of_group == 64
    backwards = [dataset.read(shard) for shard in reversed(range(len(dataset)))]
    traces = [trace for shard in backwards for trace in shard]
    assert as_tuples(traces) == as_tuples(rs.read_log(table, **COLUMNS))
    assert [len(shard) for shard in dataset] == [len(shard) for shard in reversed(backwards)]
    assert [len(trace) for trace in dataset.read_all()] == lengths


def test_a_copy_reads_one_shard(tmp_path):
    write(log_of([7] * 20), tmp_path / "log.parquet", 4)
    dataset = rs.scan_traces(tmp_path / "log.parquet", **COLUMNS)
    sent = pickle.dumps(dataset)
    assert len(sent) < 10_000
    assert [pickle.loads(sent).read(5)] == [dataset.read(5)]  # noqa: S301
    assert dataset.name(5) == f"{tmp_path}/log.parquet, row group 10 to 11"
    assert "1 files, 18 shards, 140 rows" in repr(dataset)


def test_only_columns_that_are_needed_are_read(tmp_path, monkeypatch):
    read = []
    actual = pq.ParquetFile.read_row_groups

    def counting(self, groups, columns=None, **options):
        read.extend(columns)
        return actual(self, groups, columns, **options)

    write(log_of([7] * 20), tmp_path / "log.parquet", 4)
    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", counting)
    list(rs.scan_traces(tmp_path / "log.parquet", **COLUMNS))
    assert set(read) == {"run", "time", "event", "answer"}


def test_runs_continue_in_the_next_file(tmp_path):
    table = log_of([5, 30, 4])
    for number, (start, end) in enumerate([(0, 8), (8, 20), (20, 31), (31, 39)]):
        write(table.slice(start, end - start), tmp_path / f"{number}.parquet", 6)
    dataset = rs.scan_traces(tmp_path, **COLUMNS)
    assert as_tuples(dataset.read_all()) == as_tuples(rs.read_log(table, **COLUMNS))
    # The second run begins in the first file and ends in the last, where the third begins.
    assert [len(shard) for shard in dataset] == [2, 0, 0, 0, 0, 1]


def test_machines_do_not_depend_on_shards(tmp_path):
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
    expected = rs.infer(rs.read_log(table, **UNORDERED)).machines
    for rows_of_group in (3, 10, 500):
        path = tmp_path / f"{rows_of_group}.parquet"
        write(table, path, rows_of_group)
        assert rs.infer(rs.scan_traces(path, **UNORDERED)).machines == expected
    assert expected["answer"].states == 2


def test_files_of_traces_are_split_between_episodes(tmp_path):
    traces = rs.TraceSet(
        rs.Trace(list(range(length + 1)), [None] * (length + 1), ["go"] * length, [0.5] * length)
        for length in (3, 12, 30, 1, 1, 8)
    )
    for rows_of_group in (2, 5, 11):
        path = tmp_path / f"{rows_of_group}.parquet"
        write(traces.to_arrow(), path, rows_of_group)
        dataset = rs.scan_traces(path)
        assert len(dataset) > 3
        assert dataset.read_all() == traces
    # In a folder each file has its own episodes, even where their numbers are the same.
    assert len(rs.scan_traces(tmp_path).read_all()) == 18


def test_rows_may_be_in_any_order_within_a_shard(tmp_path):
    table = log_of([5, 5])
    write(table.take([9, 3, 1, 7, 0, 8, 2, 5, 4, 6]), tmp_path / "log.parquet", 10)
    dataset = rs.scan_traces(tmp_path / "log.parquet", **COLUMNS)
    assert dataset.read(0) == rs.read_log(table, **COLUMNS)


def test_the_warning_about_dropped_steps_is_issued_once(tmp_path):
    rows = {"run": [1, 1, 2, 2], "see": [1, 2, 3, 4], "do": ["go"] * 4}
    for name in "ab":
        names = pa.array([f"{name}{run}" for run in rows["run"]])
        pq.write_table(pa.table({**rows, "run": names}), tmp_path / f"{name}.parquet")
    dataset = rs.scan_traces(tmp_path, episode="run", observation="see", action="do")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [len(shard) for shard in dataset] == [len(shard) for shard in dataset] == [2, 2]
    assert len(caught) == 1
    assert "a.parquet: the last row is a step" in str(caught[0].message)


# Scattered episodes.

SCATTERED = r"are not consecutive, at .*log\.parquet, row \d+ and .*log\.parquet, row \d+, with"


@pytest.mark.parametrize("statistics", [True, False])
def test_a_run_in_two_files_that_are_not_neighbors_is_refused(tmp_path, statistics):
    for number, ids in enumerate([[1, 2], [3, 1]]):
        path = tmp_path / f"{number}.parquet"
        write(log_of([5, 5], ids), path, 10, write_statistics=statistics)
    with pytest.raises(rs.TraceError, match=r"0\.parquet, row 0 and .*1\.parquet, row 5, with"):
        rs.scan_traces(tmp_path, **COLUMNS)
    own = rs.scan_traces(tmp_path, **{**COLUMNS, "episode": ["__filename", "run"]})
    assert [len(shard) for shard in own] == [2, 2]


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("ids", [[1, 2, 3, 1], [1, 2, 3, 2], [3, 1, 1, 3], [2, 2, 9, 1, 2]])
def test_scattered_runs_are_refused(tmp_path, ids, statistics):
    write(log_of([12] * len(ids), ids), tmp_path / "log.parquet", 6, write_statistics=statistics)
    with pytest.raises(rs.TraceError, match=SCATTERED) as caught:
        list(rs.scan_traces(tmp_path / "log.parquet", **UNORDERED))
    assert "\n" not in str(caught.value)
    assert "sort the rows" in str(caught.value)


@pytest.mark.parametrize(
    ("run", "rows_of_group", "rows"),
    [
        # By their bounds 1…5 and 5…9 share at most 5, which is in the middle of both.
        ([1, 1, 5, 5, 4, 4, 4, 4, 3, 3, 9, 9, 5, 5, 6, 6, 7, 7, 8, 8], 10, (2, 12)),
        # 5 is in the first row group of a shard of two, and in the next shard.
        ([1, 1, 1, 5, 5, 2, 3, 3, 3, 3, 5, 5, 6, 6, 7], 5, (3, 10)),
    ],
)
def test_a_run_of_two_shards_has_to_be_at_their_boundary(tmp_path, run, rows_of_group, rows):
    write(log_of([1] * len(run), run), tmp_path / "log.parquet", rows_of_group)
    with pytest.raises(rs.TraceError, match=r"row {} and .* row {}, with".format(*rows)):
        rs.scan_traces(tmp_path / "log.parquet", **UNORDERED).read(0)


def test_a_large_file_needs_a_column_of_episodes(tmp_path):
    write(log_of([40]), tmp_path / "log.parquet", 10)
    with pytest.raises(rs.OptionError, match=r"log\.parquet.* name the column .*__filename"):
        rs.scan_traces(tmp_path / "log.parquet", input="event", output="answer")


# Facts of the first read.

LENGTHS = [3, 4, 5, 41, 8, 6, 7, 12, 9]
BEGINNING = {0, 1, 5, 6, 7, 8}
"""The shards in which these runs begin."""


class WithCopies(Threads):
    """Workers that only know what they are sent: a copy works on each shard."""

    def map_reduce(self, work, shards, combine, **more):
        sent = pickle.dumps(work)

        def work_on_copy(shard):
            return pickle.loads(sent)(shard)  # noqa: S301

        return super().map_reduce(work_on_copy, shards, combine, **more)


@pytest.fixture
def reads(monkeypatch):
    """For each read: its columns, the first row group, and the number of rows if not all."""
    noted = []
    original = StoredFiles.read

    def read(self, row_groups, names, rows=None):
        noted.append((set(names), row_groups[0].group, rows))
        return original(self, row_groups, names, rows)

    monkeypatch.setattr(StoredFiles, "read", read)
    return noted


@pytest.fixture(params=["numbers", "texts", "dates", "no statistics", "unordered"])
def path(request, tmp_path):
    """Runs in shards of ten rows, which footers distinguish or do not."""
    ids = np.arange(len(LENGTHS))
    if request.param == "unordered":
        ids = np.random.default_rng(1).permutation(1000)[: len(LENGTHS)]
    run = np.repeat(ids, LENGTHS)
    if request.param == "dates":
        run = run.astype("datetime64[D]")
    table = pa.table(
        {
            "run": run if request.param != "texts" else [f"run {number}" for number in run],
            "time": np.arange(len(run)) * 7,
            "event": [("coin", "push")[row * row % 3 == 1] for row in range(len(run))],
            "answer": np.arange(len(run)) % 4,
        }
    )
    path = tmp_path / f"{request.param}.parquet"
    statistics = request.param != "no statistics"
    pq.write_table(table, path, row_group_size=10, write_statistics=statistics)
    return path


def test_the_first_read_finds_leading_rows_and_the_order(path):
    dataset = rs.scan_traces(path, **COLUMNS)
    facts = [dataset.scan(shard).facts for shard in range(len(dataset))]
    # 3 4 3|2 8|10|10|10|3 7|1 6 3|4 6|6 4|5: those before the first run that begins there.
    assert [fact.leading_rows for fact in facts] == [0, 2, 10, 10, 10, 3, 1, 4, 6, 5]
    in_order = {shard for shard, fact in enumerate(facts) if fact.is_sorted}
    if path.stem == "unordered":
        assert in_order <= BEGINNING
    else:
        assert in_order == BEGINNING


def test_no_shard_reads_all_episodes_of_another(path, reads):
    dataset = rs.scan_traces(path, **COLUMNS)
    reads.clear()  # without bounds in footers, episodes are read once, at opening
    traces = [dataset.read(shard) for shard in range(len(dataset))]
    assert sorted(len(trace) for shard in traces for trace in shard) == sorted(LENGTHS)
    whole = [group for _, group, rows in reads if rows is None]
    if path.stem != "dates":
        assert len(whole) == len({*whole})


@pytest.mark.parametrize("workers", [Threads(2), WithCopies(2)], ids=["threads", "copies"])
def test_later_passes_read_no_order_and_no_neighbors(path, reads, workers):
    dataset = rs.scan_traces(path, **COLUMNS)
    expected = [dataset.scan(shard) for shard in range(len(dataset))]
    corpus = Corpus(dataset, workers=workers)
    reads.clear()
    again = [corpus.shards.read(shard) for shard in range(len(dataset))]
    assert again == [scan.traces for scan in expected]
    assert all(names - {"time"} == {"run", "event", "answer"} for names, _, _ in reads)
    in_order = {shard for shard, scan in enumerate(expected) if scan.facts.is_sorted}
    with_time = {group for names, group, rows in reads if rows is None and "time" in names}
    assert with_time == BEGINNING - in_order
    assert [group for _, group, rows in reads if rows is None] == sorted(BEGINNING)


def test_facts_are_cached(path, tmp_path):
    corpora = [
        Corpus(
            rs.scan_traces(path, **COLUMNS),
            workers=WithCopies(2),
            cache=Store(str(tmp_path / "cache")),
        )
        for _ in range(2)
    ]
    first, again = (corpus.shards._facts for corpus in corpora)
    assert first == again
    assert len(first) == len(corpora[0].shards)


def test_rows_out_of_order_are_sorted_at_each_read(tmp_path):
    traces = WORLD.rollouts(20, seed=0)
    table = traces.to_arrow()
    for order, is_sorted in ((1, True), (-1, False)):
        path = tmp_path / f"{order}.parquet"
        pq.write_table(
            table.take(list(range(table.num_rows))[::order]), path, row_group_size=1 << 20
        )
        dataset = rs.scan_traces(path)
        scan = dataset.scan(0)
        assert scan.facts.is_sorted is is_sorted
        again = dataset.with_facts({0: scan.facts}).read(0)
        assert scan.traces == again == traces


def test_a_column_that_orders_and_is_an_output_is_read_again(tmp_path, reads):
    write(log_of([3, 2]), tmp_path / "log.parquet", 10)
    columns = {**COLUMNS, "output": ["answer", "time"]}
    dataset = rs.scan_traces(tmp_path / "log.parquet", **columns)
    scan = dataset.scan(0)
    assert dataset.with_facts({0: scan.facts}).read(0) == scan.traces
    assert "time" in reads[-1][0]


def test_bounds_may_be_wider_than_the_values(tmp_path):
    """Other writers may shorten texts, so that shards seem to share an episode."""
    run = ["a", "b", "b", "d", "d", "e", "c", "c", "c", "c", "g", "g", "h"]
    table = pa.table({"run": run, "time": range(13), "event": ["coin"] * 13, "answer": [0] * 13})
    write(table, tmp_path / "log.parquet", 10)
    dataset = rs.scan_traces(tmp_path / "log.parquet", **COLUMNS)
    assert not dataset._shards.continues.any()
    wide = rs.scan_traces(tmp_path / "log.parquet", **COLUMNS)
    wide._shards = replace(wide._shards, continues=np.array([False, True]), boundaries={1: ("f",)})
    assert [*wide] == [*dataset]
    assert [len(shard) for shard in dataset] == [5, 2]
