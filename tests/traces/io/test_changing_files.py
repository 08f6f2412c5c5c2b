"""Files that somebody writes to while they are read."""

import os
from pathlib import Path

import pytest

import resolvent as rs
from resolvent.traces.scan import storage

LINE = '{"observations":["hall","attic"],"labels":[[],[]],"actions":["up"],"rewards":[1]}\n'
ANOTHER = LINE.replace("attic", "cellar")


def traces_of(text: str, folder: Path) -> rs.TraceSet:
    path = folder / "made.jsonl"
    path.write_text(text)
    return rs.read_traces(path)


def write(path: Path, text: str) -> None:
    if path.suffix == ".parquet":
        traces_of(text, path.parent.parent).save(path)
    elif path.suffix == ".csv":
        path.write_text("o,a,r\n" + "hall,up,1\n" * text.count("\n"))
    else:
        path.write_text(text)


CHANGES = {
    "longer": lambda path: write(path, LINE * 3),
    "written again": lambda path: (write(path, ANOTHER * 2), os.utime(path, ns=(5, 5))),
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_a_file_that_changes_while_it_is_read(tmp_path, monkeypatch, suffix, change):
    folder = tmp_path / "read"
    folder.mkdir()
    path = folder / f"traces.{suffix}"
    write(path, LINE * 2)

    def read():
        if suffix == "csv":
            return rs.read_table(path, observation="o", action="a", reward="r", progress=told)
        return rs.read_traces(path, progress=told)

    changed = []

    def told(fraction):
        if not changed:
            changed.append(fraction)
            change(path)

    with pytest.raises(rs.TraceError, match=rf"traces\.{suffix} changed while it was read \("):
        read()
    assert changed


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_folder_that_changes_between_two_passes(tmp_path, change):
    folder = tmp_path / "read"
    folder.mkdir()
    write(folder / "a.parquet", LINE)
    write(folder / "b.parquet", LINE * 2)
    scanned = rs.scan_traces(folder)
    assert sum(len(traces) for traces in scanned) == 3
    change(folder / "b.parquet")
    with pytest.raises(rs.TraceError, match=r"b\.parquet.*(has changed since|does not exist)"):
        rs.infer(scanned)


@pytest.mark.parametrize("change", ["longer", "written again"])
@pytest.mark.parametrize("is_scanned", [False, True])
def test_a_parquet_file_that_changes_while_it_is_read(tmp_path, monkeypatch, is_scanned, change):
    folder = tmp_path / "read"
    folder.mkdir()
    path = folder / "traces.parquet"
    write(path, LINE * 2)
    inner = storage.pq.ParquetFile.read_row_groups

    def read_and_change(file, *given):
        table = inner(file, *given)
        CHANGES[change](path)
        return table

    monkeypatch.setattr(storage.pq.ParquetFile, "read_row_groups", read_and_change)
    with pytest.raises(rs.TraceError, match=r"traces\.parquet: the file has changed since"):
        rs.scan_traces(folder).read(0) if is_scanned else rs.read_traces(path)


def test_a_pipe_has_nothing_to_compare(tmp_path):
    import threading

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(LINE,))
    writer.start()
    assert len(rs.read_traces(pipe)) == 1
    writer.join()
