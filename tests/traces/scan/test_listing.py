"""Locations on this machine, and the errors about those that cannot be scanned."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import resolvent as rs
from resolvent.traces.scan.listing import StoredFile, uri_text
from worlds import random_world

WORLD = random_world(1, size=9, labels=3, tm_states=3)
EXPECTED = [WORLD.rollouts(4, number) for number in range(3)]
LOG = {"episode": "run", "input": "event", "output": "answer"}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    for number, traces in enumerate(EXPECTED):
        traces.save(folder / f"{number}.parquet")
    return folder


def error_of(location, **columns):
    """Return the one line with which a location is refused."""
    with pytest.raises(rs.TraceError) as caught:
        list(rs.scan_traces(location, **columns))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def write_log(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def test_globs_lists_and_files(folder, monkeypatch):
    assert [*rs.scan_traces(f"{folder}/*.parquet")] == EXPECTED
    assert [*rs.scan_traces(f"{folder}/?.parquet")] == EXPECTED
    assert [*rs.scan_traces(f"{folder.parent}/lo*")] == EXPECTED
    assert [*rs.scan_traces(f"{folder.parent}/**/[01].parquet")] == EXPECTED[:2]
    for pattern in ("**.parquet", "lo**", "**", "*/**", "l*s/**", "**/log?/**"):
        assert [*rs.scan_traces(f"{folder.parent}/{pattern}")] == EXPECTED
    assert [*rs.scan_traces(folder / "1.parquet")] == EXPECTED[1:2]
    listed = rs.scan_traces([folder / "2.parquet", f"{folder}/0.parquet"])
    assert [*listed] == [EXPECTED[2], EXPECTED[0]]
    assert listed.location == f"{folder}/2.parquet and 1 more"
    assert [*rs.scan_traces(str(folder / name) for name in ("0.parquet",))] == EXPECTED[:1]
    assert rs.infer(f"{folder}/*.parquet").traces == 12


def test_relative_paths_are_names_and_stay_valid(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert rs.scan_traces("*.parquet").files == ["0.parquet", "1.parquet", "2.parquet"]
    monkeypatch.chdir(folder.parent)
    assert rs.scan_traces("**/1.parquet").files == ["logs/1.parquet"]
    relative = rs.scan_traces("logs")
    assert relative.name(0) == "logs/0.parquet"
    monkeypatch.chdir("/")  # as in another process
    assert [*relative] == EXPECTED


def test_a_file_whose_name_looks_like_a_glob(folder):
    (folder / "0.parquet").rename(folder / "[0].parquet")
    assert [*rs.scan_traces(folder / "[0].parquet")] == EXPECTED[:1]


def test_files_of_other_programs_are_ignored(folder):
    for name in ("_SUCCESS", "_metadata.parquet", ".0.parquet", ".0.parquet.crc"):
        (folder / name).write_text("not traces")
    for name in ("_temporary", "old"):
        (folder / name).mkdir()
        (folder / name / "x.parquet").write_text("not traces")
    assert [*rs.scan_traces(folder)] == EXPECTED
    assert rs.read_traces(folder) == rs.TraceSet.concatenate(EXPECTED)
    assert [*rs.scan_traces(f"{folder}/*.parquet")] == EXPECTED
    assert "x.parquet: is not a Parquet file" in error_of(f"{folder}/_temporary/*.parquet")


def test_keys_of_folders_are_columns(tmp_path):
    for city, day in (("Ulm", "01"), ("Ulm", "02"), ("%C3%96hringen", "02")):
        path = tmp_path / f"city={city}" / f"day={day}" / "x.parquet"
        write_log(path, run=[1, 1], event=["coin", "push"], answer=["ok", "open"])
    columns = {"episode": ["city", "day", "run"], "input": "event", "output": ["answer", "day"]}
    dataset = rs.scan_traces(tmp_path, **columns)
    # "01" does not print back as an integer, so days are texts.
    days = [trace.columns["day"][0] for trace in dataset.read_all()]
    assert days == ["02", "01", "02"]
    assert Path(dataset.files[0]).parts[-3:] == ("city=%C3%96hringen", "day=02", "x.parquet")
    with pytest.raises(rs.TraceError, match=r"x\.parquet, row 0 and .*x\.parquet, row 0"):
        rs.scan_traces(tmp_path, **{**columns, "episode": ["day", "run"]})
    whole = rs.read_log(tmp_path, **columns)
    assert sorted(trace.columns["day"][0] for trace in whole) == sorted(days)


def test_integer_keys_are_integers(tmp_path):
    for day in (2, 10):
        (tmp_path / f"day={day}").mkdir()
        EXPECTED[0].save(tmp_path / f"day={day}" / "x.parquet")
    dataset = rs.scan_traces(tmp_path, columns=["day"])
    assert [set(traces.columns["day"].values) for traces in dataset] == [{10}, {2}]
    assert rs.read_traces(tmp_path, columns=["day"]) == dataset.read_all()


def test_a_column_of_the_file_precedes_a_key(tmp_path):
    write_log(tmp_path / "run=7" / "x.parquet", run=[1, 2], event=["a", "b"], answer=[0, 1])
    assert len(rs.scan_traces(tmp_path, **LOG).read(0)) == 2


def test_locations_without_traces(tmp_path):
    assert error_of(tmp_path / "none") == f"{tmp_path}/none does not exist"
    assert "without .parquet files: name" in error_of(tmp_path)
    assert f"nothing matches {tmp_path}/*.parquet" in error_of(f"{tmp_path}/*.parquet")
    assert error_of([]) == "the list of locations is empty: name at least one file"
    assert "the location is empty" in error_of("")
    assert "a value of type int is not a location" in error_of(7)
    assert "a int in the list is not a location" in error_of([7])
    (tmp_path / "deep" / "er").mkdir(parents=True)
    assert "folders such as deep: give a glob" in error_of(tmp_path)
    (tmp_path / "log.csv").write_text("run,event\n")
    assert "holds 1 file of other kinds, such as log.csv" in error_of(tmp_path)
    assert "log.csv: is not a Parquet file: read it with read_traces" in error_of(
        f"{tmp_path}/*.csv"
    )


def test_a_file_that_is_named_twice(folder):
    assert "0.parquet is in the list twice" in error_of([folder, folder / "0.parquet"])


def test_files_without_rows_are_skipped(tmp_path):
    rows = {"run": [1], "event": ["a"], "answer": [0]}
    write_log(tmp_path / "b.parquet", **rows)
    pq.write_table(pa.table(rows).slice(0, 0), tmp_path / "a.parquet")
    assert [len(traces) for traces in rs.scan_traces(tmp_path, **LOG)] == [1]
    assert len(rs.read_log(tmp_path, **LOG)) == 1
    (tmp_path / "b.parquet").unlink()
    assert "a.parquet holds no traces: the table has no rows" in error_of(tmp_path, **LOG)


def test_files_with_other_columns_or_types(tmp_path):
    write_log(tmp_path / "a.parquet", run=[1], event=["a"], answer=[0])
    write_log(tmp_path / "b.parquet", run=[2], event=["a"], answer=["0"])
    assert error_of(tmp_path, **LOG) == (
        f"{tmp_path}/b.parquet: the column `answer` is of type string, but of type int64 in "
        f"{tmp_path}/a.parquet: write both with the same type"
    )
    write_log(tmp_path / "b.parquet", run=[2], event=["a"], other=[0])
    assert error_of(tmp_path, **LOG) == (
        f"{tmp_path}/b.parquet: there is no column `answer`: there are run, event, other"
    )
    # Integers of other widths and texts with dictionaries are the same symbols.
    short = pa.array([3], pa.int8()), pa.array(["a"]).dictionary_encode(), pa.array([0], pa.int16())
    write_log(tmp_path / "b.parquet", **dict(zip(("run", "event", "answer"), short, strict=True)))
    both = rs.scan_traces(tmp_path, **LOG).read_all()
    assert [trace.columns["answer"] for trace in both] == [(0,), (0,)]


def test_files_of_traces_with_other_columns(folder):
    table = EXPECTED[0].to_arrow()
    pq.write_table(table.drop_columns(["reward"]), folder / "1.parquet")
    message = f"{folder}/0.parquet has `reward`, and {folder}/1.parquet does not"
    assert message in error_of(folder)
    with pytest.raises(rs.TraceError, match=r"0\.parquet has `reward`, and .*1\.parquet does not"):
        rs.read_traces(folder)
    pq.write_table(table.drop_columns(["label"]), folder / "1.parquet")
    assert "1.parquet: no column `label`: traces need the columns" in error_of(folder)


def test_a_file_that_changes_between_two_passes(folder):
    dataset = rs.scan_traces(folder)
    list(dataset)
    status = (folder / "1.parquet").stat()
    os.utime(folder / "1.parquet", ns=(status.st_atime_ns, status.st_mtime_ns + 1000))
    with pytest.raises(rs.TraceError, match=r"1\.parquet: the file has changed since .* again\)"):
        list(dataset)
    assert dataset.read(0) == EXPECTED[0]
    (folder / "1.parquet").unlink()
    with pytest.raises(rs.TraceError, match=r"1\.parquet does not exist$"):
        list(dataset)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"input": "event"}, "input needs output"),
        ({"output": "answer"}, "input is None"),
        ({"input": "event", "output": "answer", "reward": "pay"}, "reward for a table"),
        ({"episode": "run"}, "nothing to predict"),
        ({**LOG, "columns": ["cost"]}, "name them as outputs"),
    ],
)
def test_arguments_that_do_not_fit_together(folder, columns, message):
    with pytest.raises(rs.OptionError, match=message):
        rs.scan_traces(folder, **columns)


def test_a_column_that_occurs_twice(tmp_path):
    table = pa.table([[1, 1], [2, 2], ["a", "b"]], names=["run", "run", "seen"])
    pq.write_table(table, tmp_path / "log.parquet")
    with pytest.raises(rs.TraceError, match=r"log\.parquet: there are several columns `run`"):
        rs.scan_traces(tmp_path / "log.parquet", episode="run", observation="seen")


def test_texts_of_locations():
    assert uri_text("s3://key:secret@bucket/logs") == "s3://bucket/logs"
    assert uri_text(["a.parquet", "b.parquet"]) == "a.parquet and 1 more"


def test_keys_in_paths_are_decoded():
    file = StoredFile("x", "/data/day=3/city=S%C3%A3o/x.parquet")
    assert file.keys == {"day": "3", "city": "São"}
