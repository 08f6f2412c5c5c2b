"""Damaged files: named and refused, or left out with every episode that may lack rows."""

import os
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import resolvent as rs
from resolvent.traces.scan import shards

WORDS = {"episode": "run", "order": "time", "input": "event", "output": "answer"}


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    monkeypatch.setattr(shards, "SHARD_ROWS", 10)


def log_of(lengths, first=0):
    """Runs of so many rows, one after the other, each row with a number of its own."""
    run = [first + one for one, length in enumerate(lengths) for _ in range(length)]
    return pa.table(
        {
            "run": run,
            "time": [step for length in lengths for step in range(length)],
            "event": ["go"] * len(run),
            "answer": [1000 * first + row for row in range(len(run))],
        }
    )


def damage(path, group, column="answer"):
    """Overwrite what a row group holds of a column, and leave size and time as they are."""
    file = pq.ParquetFile(path)
    chunk = file.metadata.row_group(group).column(file.schema_arrow.names.index(column))
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    told = path.stat()
    content = bytearray(path.read_bytes())
    content[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(content)
    os.utime(path, ns=(told.st_atime_ns, told.st_mtime_ns))


def kept(scanned):
    """The answers of each trace that is read, and what was left out of which piece."""
    found = [scanned.scan(number)[:2] for number in range(len(scanned))]
    gaps = {number: gap for number, (_, gap) in enumerate(found) if gap is not None}
    traces = [tuple(trace.columns["answer"]) for traces, _ in found for trace in traces]
    return traces, gaps


def test_by_default_the_file_and_the_row_group_are_named(tmp_path):
    path = tmp_path / "log.parquet"
    pq.write_table(log_of([5] * 8), path, row_group_size=5)
    damage(path, 3)
    scanned = rs.scan_traces(path, **WORDS)
    assert len(scanned.read(0)) == 2
    said = r"log.parquet, row groups 2 to 3: cannot be read as Parquet .*; make it again"
    with pytest.raises(rs.errors.DamagedFile, match=said):
        scanned.read(1)
    with pytest.raises(rs.errors.DamagedFile, match=said):
        rs.infer(scanned)


@pytest.mark.parametrize("column", ["answer", "run"])
@pytest.mark.parametrize("statistics", [True, False])
def test_no_episode_is_cut(tmp_path, column, statistics):
    """Whatever is damaged: what is kept is whole, and what is lost is said."""
    draw = random.Random(column + str(statistics))
    for trial in range(5):
        lengths = [draw.choice([1, 2, 3, 9, 10, 25]) for _ in range(14)]
        table = log_of(lengths)
        path = tmp_path / f"{trial}.parquet"
        pq.write_table(table, path, row_group_size=5, write_statistics=statistics)
        broken = {row for row in range(table.num_rows // 5) if draw.random() < 0.15} or {1}
        scanned = rs.scan_traces(path, damaged="skip", **WORDS)
        assert kept(scanned)[1] == {}
        for group in broken:
            damage(path, group, column)
        scanned = rs.scan_traces(path, damaged="skip", **WORDS)
        found, gaps = kept(scanned)
        lost_rows = set()
        for group in broken:
            piece = group // 2  # two row groups have the ten rows of a piece
            lost_rows |= set(range(piece * 10, min(piece * 10 + 10, table.num_rows)))
        runs, start = [], 0
        for length in lengths:
            runs.append(tuple(range(start, start + length)))
            start += length
        clean = [run for run in runs if not lost_rows & {*run}]
        assert {*found} <= {*runs}  # none is cut
        begun = {run for run in found if run[0] in lost_rows}
        assert not begun  # what begins in a damaged piece is left out with it
        beside = sum(gap.episodes for gap in gaps.values())
        assert len({*clean} - {*found}) <= beside
        assert {number for number, gap in gaps.items() if gap.whole} == {g // 2 for g in broken}
        assert all(gap.rows for gap in gaps.values() if gap.whole)
        fixed = scanned.skipping(gaps)
        again = [tuple(t.columns["answer"]) for traces in fixed for t in traces]
        assert again == found


def test_what_was_left_out_stays_so(tmp_path):
    path = tmp_path / "log.parquet"
    pq.write_table(log_of([4] * 10), path, row_group_size=5)
    whole, told = path.read_bytes(), path.stat()
    damage(path, 3)
    scanned = rs.scan_traces(path, damaged="skip", **WORDS)
    found, gaps = kept(scanned)
    fixed = scanned.skipping(gaps)
    path.write_bytes(whole)
    os.utime(path, ns=(told.st_atime_ns, told.st_mtime_ns))
    assert sum(map(len, fixed)) == len(found) < len(rs.scan_traces(path, **WORDS).read_all())
    damage(path, 6)
    with pytest.raises(rs.errors.DamagedFile, match="row group"):
        list(fixed)


def test_a_file_without_an_end_and_one_that_is_gone(tmp_path):
    for number in range(5):
        pq.write_table(log_of([5, 6], 2 * number), tmp_path / f"{number}.parquet")
    (tmp_path / "1.parquet").write_bytes(b"")
    with pytest.raises(rs.errors.DamagedFile, match=r"1.parquet: is no Parquet file"):
        rs.scan_traces(tmp_path, **WORDS)
    scanned = rs.scan_traces(tmp_path, damaged="skip", **WORDS)
    (tmp_path / "3.parquet").unlink()
    found, gaps = kept(scanned)
    # An episode may go on in a file of which nothing is known. That of the fourth one said
    # between which values its episodes lie, which are not those of the files beside it.
    assert [run[0] for run in found] == [0, 4000 + 5, 8000, 8005]
    assert {number: (gap.whole, gap.rows) for number, gap in gaps.items()} == {
        0: (False, None),
        1: (True, None),
        2: (False, None),
        3: (True, 11),
    }
    with pytest.warns(rs.errors.TableWarning, match="cannot be read is left out, with 11 rows"):
        assert len(scanned.read(3)) == 0
    with pytest.raises(rs.errors.DamagedFile, match="does not exist"):
        scanned.skipping({}).read(3)


def test_what_a_path_says_keeps_episodes_apart(tmp_path):
    for day in range(3):
        (tmp_path / f"day={day}").mkdir()
        pq.write_table(log_of([5, 6]), tmp_path / f"day={day}" / "log.parquet")
    (tmp_path / "day=1" / "log.parquet").write_bytes(b"PAR1 and nothing else")
    words = WORDS | {"episode": ["day", "run"]}
    found, gaps = kept(rs.scan_traces(tmp_path, damaged="skip", **words))
    assert len(found) == 4
    assert [*gaps] == [1]
    words["episode"] = ["run", "__filename"]
    assert len(kept(rs.scan_traces(tmp_path, damaged="skip", **words))[0]) >= 2


def test_our_own_files(tmp_path):
    traces = rs.read_log(log_of([5] * 9), **WORDS)
    for number in range(3):
        traces[3 * number : 3 * number + 3].save(tmp_path / f"{number}.parquet")
    damage(tmp_path / "1.parquet", 0, "action")
    scanned = rs.scan_traces(tmp_path, damaged="skip")
    found, gaps = kept(scanned)
    assert [run[0] for run in found] == [0, 5, 10, 30, 35, 40]
    assert [(number, gap.whole, gap.episodes) for number, gap in gaps.items()] == [(1, True, 0)]


def test_a_bit_that_flipped_is_noticed_by_its_checksum(tmp_path):
    path = tmp_path / "log.parquet"
    how = {"use_dictionary": False, "compression": "none", "write_page_checksum": True}
    pq.write_table(log_of([5] * 4), path, row_group_size=10, **how)
    content = path.read_bytes()
    at = content.index((17).to_bytes(8, "little"), content.index((16).to_bytes(8, "little")))
    told = path.stat()
    path.write_bytes(content[:at] + b"\x07" + content[at + 1 :])
    os.utime(path, ns=(told.st_atime_ns, told.st_mtime_ns))
    found, gaps = kept(rs.scan_traces(path, damaged="skip", **WORDS))
    assert [run[0] for run in found] == [0, 5]
    assert "CRC" in gaps[1].why


def test_nothing_can_be_read(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(rs.errors.DamagedFile, match=r"a.parquet: nothing can be read of it"):
        rs.scan_traces(tmp_path, damaged="skip", **WORDS)
    with pytest.raises(rs.OptionError, match="write 'refuse' or 'skip'"):
        rs.scan_traces(tmp_path, damaged="ignore", **WORDS)


def test_other_columns_are_no_damage(tmp_path):
    pq.write_table(log_of([5]), tmp_path / "a.parquet")
    pq.write_table(log_of([5]).drop(["answer"]), tmp_path / "b.parquet")
    with pytest.raises(rs.TraceError, match="there is no column `answer`"):
        rs.scan_traces(tmp_path, damaged="skip", **WORDS)
