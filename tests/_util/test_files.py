import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from resolvent._util.files import atomic_write, check_writable, without_secrets
from resolvent.errors import ResolventError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_when_the_block_ends(tmp_path):
    target = tmp_path / "out.txt"
    with atomic_write(target) as file:
        file.write(b"new")
        assert not target.exists()
    assert target.read_bytes() == b"new"
    assert names(tmp_path) == ["out.txt"]


def test_an_existing_file_is_replaced(tmp_path):
    target = tmp_path / "out.txt"
    target.write_bytes(b"a longer old text")
    with atomic_write(str(target)) as file:
        file.write(b"new")
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("failure", [KeyboardInterrupt, ValueError, SystemExit])
def test_any_exception_leaves_the_old_file_and_nothing_else(tmp_path, failure):
    target = tmp_path / "out.txt"
    target.write_bytes(b"old")
    with pytest.raises(failure), atomic_write(target) as file:
        raise failure(file.write(b"half of the new"))
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["out.txt"]


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path):
    real = tmp_path / "real.txt"
    real.write_bytes(b"old")
    link = tmp_path / "link.txt"
    link.symlink_to(real)
    with atomic_write(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"


def test_permissions_are_those_of_an_ordinary_new_file(tmp_path):
    with atomic_write(tmp_path / "out.txt") as file:
        file.write(b"new")
    (tmp_path / "plain.txt").write_bytes(b"new")
    assert (tmp_path / "out.txt").stat().st_mode == (tmp_path / "plain.txt").stat().st_mode


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path, mode):
    target = tmp_path / "out.txt"
    target.write_bytes(b"old")
    target.chmod(mode)
    with atomic_write(target) as file:
        file.write(b"new")
    assert stat.S_IMODE(target.stat().st_mode) == mode


def test_a_new_file_obeys_the_umask(tmp_path):
    before = os.umask(0o077)
    try:
        with atomic_write(tmp_path / "out.txt") as file:
            file.write(b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out.txt").stat().st_mode) == 0o600


def test_links_in_a_circle_are_refused(tmp_path):
    (tmp_path / "one").symlink_to("other")
    (tmp_path / "other").symlink_to("one")
    with (
        pytest.raises(ResolventError, match=r"cannot write .*one: links lead from it back to it"),
        atomic_write(tmp_path / "one"),
    ):
        pass


def test_a_missing_folder_is_named(tmp_path):
    target = tmp_path / "nowhere" / "out.txt"
    with (
        pytest.raises(ResolventError, match=r"cannot write .*out\.txt: the folder .*nowhere does"),
        atomic_write(target),
    ):
        pass


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(ResolventError, match="it is a folder; name a file"), atomic_write(tmp_path):
        pass


def test_a_file_where_a_folder_should_be(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with (
        pytest.raises(ResolventError, match=r"cannot write .*: not a directory"),
        atomic_write(tmp_path / "file" / "out.txt"),
    ):
        pass


def test_a_full_disk_is_reported_and_leaves_nothing(tmp_path):
    target = tmp_path / "out.txt"
    with (
        pytest.raises(ResolventError, match=r"out\.txt: no space left on device"),
        atomic_write(target),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert names(tmp_path) == []


def test_errors_about_other_files_are_not_taken_for_its_own(tmp_path):
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "out.txt"):
        (tmp_path / "elsewhere" / "input.txt").read_bytes()


def test_a_pipe_is_written_to_directly(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    with atomic_write(pipe) as file:
        file.write(b"through")
    reader.join()
    assert received == [b"through"]
    assert pipe.is_fifo()


def test_a_pipe_may_be_named_by_its_descriptor():
    reading, writing = os.pipe()
    with atomic_write(f"/dev/fd/{writing}") as file:
        file.write(b"through")
    assert os.read(reading, 10) == b"through"
    os.close(reading)
    os.close(writing)


def test_a_check_leaves_a_folder_as_it_is(tmp_path):
    (tmp_path / "old.txt").write_text("old")
    for name in ("old.txt", "new.txt"):
        check_writable(tmp_path / name)
    assert names(tmp_path) == ["old.txt"]
    assert (tmp_path / "old.txt").read_text() == "old"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (
            "s3://key:secret@bucket/logs?endpoint_override=localhost:9000",
            "s3://bucket/logs",
        ),
        (
            "abfs://container:secret@account.dfs.core.windows.net/logs",
            "abfs://container@account.dfs.core.windows.net/logs",
        ),
    ],
)
def test_addresses_are_shown_without_secrets(address, shown):
    assert without_secrets(address) == shown
