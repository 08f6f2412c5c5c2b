"""Files that a command is to write, refused before any work is done if it cannot or must not."""

import os
from itertools import combinations
from pathlib import Path

from resolvent._util.files import link_target
from resolvent.errors import OptionError, ResolventError
from resolvent.traces.io.formats import minari_id, written_format


def check_targets(*paths: Path | None, inputs: tuple[Path | None, ...] = ()) -> None:
    """Refuse files that cannot be written, that are one file, or that the command reads.

    Two paths are one file also by links and hard links, and by other spellings of folders.
    """
    given = [path for path in paths if path is not None]
    for path in given:
        for source in inputs:
            if source is not None and _would_replace(path, source):
                raise OptionError(
                    f"cannot write {path}: it would replace what is read from {source}; "
                    f"name another file"
                )
        _check_writable(path)
    for one, other in combinations(given, 2):
        if _is_same(one, other):
            also = "" if one == other else f", which is the same file as {one}"
            raise OptionError(
                f"cannot write two things to {other}{also}: give each a file of its own"
            )


def check_trace_target(
    path: Path,
    format: str | None = None,  # noqa: A002
    *inputs: Path | None,
) -> None:
    """Refuse traces to write as `check_targets` does, or if the file's name tells no format."""
    if minari_id(path) is None:
        check_targets(path, inputs=inputs)
        written_format(path, format)


def check_folder(path: Path) -> None:
    """Refuse a folder to write to that links lead to nowhere."""
    _link_target(path)


def _check_writable(path: Path) -> None:
    folder = path.parent
    if path.is_dir():
        raise ResolventError(f"cannot write {path}: it is a folder; name a file")
    if not folder.exists():
        raise ResolventError(
            f"cannot write {path}: the folder {folder} does not exist; make it first"
        )
    if not folder.is_dir():
        raise ResolventError(f"cannot write {path}: {folder} is not a folder")
    target = _link_target(path)
    written = path if target.exists() and not target.is_file() else target.parent
    if not written.exists():
        raise ResolventError(
            f"cannot write {path}: it is a link into {target.parent}, which does not exist"
        )
    if not os.access(written, os.W_OK):
        raise ResolventError(f"cannot write {path}: permission denied")


def _link_target(path: Path) -> Path:
    try:
        return link_target(path)
    except OSError:
        raise ResolventError(
            f"cannot write {path}: links lead from it back to it; name another place"
        ) from None


def _would_replace(target: Path, source: Path) -> bool:
    """Whether writing a file changes what is read: the file itself, or one of a folder's."""
    if not target.is_file():  # pipes and terminals may be read and written at once
        return False
    files = source.rglob("*.parquet") if source.is_dir() else [source]
    return any(file.exists() and target.samefile(file) for file in files)


def _is_same(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.is_file() and one.samefile(other)
    return link_target(one) == link_target(other)
