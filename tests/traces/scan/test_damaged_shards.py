"""Damaged files: named and refused, or skipped with every episode that may lack rows."""

import os
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import resolvent as rs
from resolvent.traces.scan import opening

COLUMNS = {"episode": "run", "order": "time", "input": "event", "output": "answer"}


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch):
    monkeypatch.setattr(opening, "SHARD_ROWS", 10)


def log_of(lengths, first=0):
    """Return runs of these lengths, one after the other; each row has an answer of its own."""
    run = [first + number for number, length in enumerate(lengths) for _ in range(length)]
    return pa.table(
        {
            "run": run,
            "time": [step for length in lengths for step in range(length)],
            "event": ["go"] * len(run),
            "answer": [1000 * first + row for row in range(len(run))],
        }
    )


def damage(path, group, column="answer"):
    """Overwrite a column of a row group; the size and time of the file stay."""
    file = pq.ParquetFile(path)
    chunk = file.metadata.row_group(group).column(file.schema_arrow.names.index(column))
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    content = bytearray(path.read_bytes())
    content[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    write_unnoticed(path, content)


def write_unnoticed(path, content):
    status = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def read_rest(dataset):
    """Return the answers of each trace that is read, and the facts about each shard."""
    scans = [dataset.scan(shard) for shard in range(len(dataset))]
    answers = [tuple(trace.columns["answer"]) for scan in scans for trace in scan.traces]
    return answers, dict(enumerate(scan.facts for scan in scans))


def skipped_of(facts):
    return {shard: fact.skipped for shard, fact in facts.items() if fact.skipped is not None}


def test_by_default_an_error_names_the_file_and_the_row_groups(tmp_path):
    path = tmp_path / "log.parquet"
    pq.write_table(log_of([5] * 8), path, row_group_size=5)
    damage(path, 3)
    dataset = rs.scan_traces(path, **COLUMNS)
    assert len(dataset.read(0)) == 2
    message = r"log.parquet, row groups 2 to 3: cannot be read as Parquet .*; make it again"
    with pytest.raises(rs.errors.DamagedFile, match=message):
        dataset.read(1)
    with pytest.raises(rs.errors.DamagedFile, match=message):
        rs.infer(dataset)


@pytest.mark.parametrize("column", ["answer", "run"])
@pytest.mark.parametrize("statistics", [True, False])
def test_episodes_are_read_whole_or_skipped(tmp_path, column, statistics):
    draw = random.Random(column + str(statistics))
    for trial in range(5):
        lengths = [draw.choice([1, 2, 3, 9, 10, 25]) for _ in range(14)]
        table = log_of(lengths)
        path = tmp_path / f"{trial}.parquet"
        pq.write_table(table, path, row_group_size=5, write_statistics=statistics)
        damaged = {group for group in range(table.num_rows // 5) if draw.random() < 0.15} or {1}
        assert skipped_of(read_rest(rs.scan_traces(path, damaged="skip", **COLUMNS))[1]) == {}
        for group in damaged:
            damage(path, group, column)
        dataset = rs.scan_traces(path, damaged="skip", **COLUMNS)
        answers, facts = read_rest(dataset)
        skipped = skipped_of(facts)
        damaged_shards = {group // 2 for group in damaged}  # of ten rows, in two row groups
        lost_rows = {row for shard in damaged_shards for row in range(shard * 10, shard * 10 + 10)}
        runs, start = [], 0
        for length in lengths:
            runs.append(tuple(range(start, start + length)))
            start += length
        intact = {run for run in runs if not lost_rows & {*run}}
        assert {*answers} <= {*runs}
        assert not any(run[0] in lost_rows for run in answers)
        assert len(intact - {*answers}) <= sum(rows.episodes for rows in skipped.values())
        assert {shard for shard, rows in skipped.items() if rows.whole} == damaged_shards
        assert all(rows.rows for rows in skipped.values() if rows.whole)
        fixed = dataset.with_facts(facts)
        assert fixed.skipped == tuple(skipped.values())
        again = [tuple(trace.columns["answer"]) for traces in fixed for trace in traces]
        assert again == answers


def test_rows_once_skipped_stay_so_and_no_others_are(tmp_path):
    path = tmp_path / "log.parquet"
    pq.write_table(log_of([4] * 10), path, row_group_size=5)
    content = path.read_bytes()
    damage(path, 3)
    dataset = rs.scan_traces(path, damaged="skip", **COLUMNS)
    answers, facts = read_rest(dataset)
    fixed = dataset.with_facts(facts)
    write_unnoticed(path, content)
    assert sum(map(len, fixed)) == len(answers) < len(rs.scan_traces(path, **COLUMNS).read_all())
    damage(path, 6)
    with pytest.raises(rs.errors.DamagedFile, match="row group"):
        list(fixed)


def test_a_file_without_a_footer_and_a_missing_one(tmp_path):
    for number in range(5):
        pq.write_table(log_of([5, 6], 2 * number), tmp_path / f"{number}.parquet")
    (tmp_path / "1.parquet").write_bytes(b"")
    with pytest.raises(rs.errors.DamagedFile, match=r"1.parquet: is not a Parquet file"):
        rs.scan_traces(tmp_path, **COLUMNS)
    dataset = rs.scan_traces(tmp_path, damaged="skip", **COLUMNS)
    (tmp_path / "3.parquet").unlink()
    answers, facts = read_rest(dataset)
    # An episode may continue in a file without a footer. The footer of the fourth file was read
    # before it was removed, and its bounds show that its neighbors share no episode with it.
    assert [run[0] for run in answers] == [0, 4000 + 5, 8000, 8005]
    skipped = {shard: (rows.whole, rows.rows) for shard, rows in skipped_of(facts).items()}
    assert skipped == {0: (False, None), 1: (True, None), 2: (False, None), 3: (True, 11)}
    with pytest.warns(
        rs.errors.TableWarning, match="^skipped, since files are damaged: 1 shard of 11 rows "
    ):
        assert len(dataset.read(3)) == 0
    with pytest.warns(
        rs.errors.TableWarning,
        match="1 shard of 11 rows, 1 shard of unknown length, 2 episodes that may lack rows",
    ):
        assert sum(map(len, dataset)) == 4
    with pytest.raises(rs.errors.DamagedFile, match="does not exist"):
        dataset.with_facts({}).read(3)


def test_episodes_of_other_paths_are_not_skipped(tmp_path):
    for day in range(3):
        (tmp_path / f"day={day}").mkdir()
        pq.write_table(log_of([5, 6]), tmp_path / f"day={day}" / "log.parquet")
    (tmp_path / "day=1" / "log.parquet").write_bytes(b"PAR1 and nothing else")
    columns = COLUMNS | {"episode": ["day", "run"]}
    answers, facts = read_rest(rs.scan_traces(tmp_path, damaged="skip", **columns))
    assert len(answers) == 4
    assert [*skipped_of(facts)] == [1]
    columns["episode"] = ["run", "__filename"]
    assert len(read_rest(rs.scan_traces(tmp_path, damaged="skip", **columns))[0]) >= 2


def test_files_of_traces(tmp_path):
    traces = rs.read_log(log_of([5] * 9), **COLUMNS)
    for number in range(3):
        traces[3 * number : 3 * number + 3].save(tmp_path / f"{number}.parquet")
    damage(tmp_path / "1.parquet", 0, "action")
    answers, facts = read_rest(rs.scan_traces(tmp_path, damaged="skip"))
    assert [run[0] for run in answers] == [0, 5, 10, 30, 35, 40]
    skipped = skipped_of(facts)
    assert [(shard, rows.whole, rows.episodes) for shard, rows in skipped.items()] == [(1, True, 0)]


def test_a_flipped_bit_is_detected_by_its_checksum(tmp_path):
    path = tmp_path / "log.parquet"
    options = {"use_dictionary": False, "compression": "none", "write_page_checksum": True}
    pq.write_table(log_of([5] * 4), path, row_group_size=10, **options)
    content = path.read_bytes()
    at = content.index((17).to_bytes(8, "little"), content.index((16).to_bytes(8, "little")))
    write_unnoticed(path, content[:at] + b"\x07" + content[at + 1 :])
    answers, facts = read_rest(rs.scan_traces(path, damaged="skip", **COLUMNS))
    assert [run[0] for run in answers] == [0, 5]
    assert "CRC" in facts[1].skipped.why


def test_no_file_can_be_read(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(rs.errors.DamagedFile, match=r"a.parquet: neither this file nor any other"):
        rs.scan_traces(tmp_path, damaged="skip", **COLUMNS)
    with pytest.raises(rs.OptionError, match="write 'refuse' or 'skip'"):
        rs.scan_traces(tmp_path, damaged="ignore", **COLUMNS)


def test_other_columns_are_no_damage(tmp_path):
    pq.write_table(log_of([5]), tmp_path / "a.parquet")
    pq.write_table(log_of([5]).drop(["answer"]), tmp_path / "b.parquet")
    with pytest.raises(rs.TraceError, match="there is no column `answer`"):
        rs.scan_traces(tmp_path, damaged="skip", **COLUMNS)
