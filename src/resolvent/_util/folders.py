"""Folders written atomically."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from resolvent._util.text import short
from resolvent.errors import ResolventError

_numbers = count()


@contextmanager
def whole_folder(folder: Path, files: tuple[str, ...]) -> Iterator[Path]:
    """Yield a new folder that replaces the existing one when the block succeeds.

    The existing one may hold only these files. If the process is killed between the two
    renames, the old folder keeps a hidden name: `recover` restores it.
    """
    try:
        if folder.exists() and not folder.is_dir():
            raise ResolventError(f"cannot write {folder}: it is a file; name a folder")
        if folder.is_dir() and any(path.name not in files for path in folder.iterdir()):
            raise ResolventError(
                f"cannot write {folder}: it holds other things; name a new folder, or an empty one"
            )
        recover(folder)
        target = folder.resolve()
    except OSError as error:
        raise ResolventError(f"cannot write {short(str(folder))}: {error.strerror}") from error
    mark = f"{os.getpid()}-{next(_numbers)}"
    part = target.with_name(f".{target.name}.{mark}.part")
    old = target.with_name(f".{target.name}.{mark}.old")
    try:
        part.mkdir(parents=True)
        yield part
        if target.exists():
            target.rename(old)
        part.rename(target)
    except OSError as error:
        raise ResolventError(f"cannot write {folder}: {error.strerror}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)
        elif old.exists():
            old.rename(target)


def recover(folder: Path) -> None:
    """Restore a folder whose writer was killed, and remove the writer's temporary folders.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     (Path(place) / ".solved.999999999-0.old").mkdir()
    ...     recover(Path(place) / "solved")
    ...     [path.name for path in Path(place).iterdir()]
    ['solved']
    """
    target = folder.resolve()
    if not target.parent.is_dir():
        return
    pattern = re.compile(rf"\.{re.escape(target.name)}\.(\d+)-\d+\.(part|old)")
    for left in sorted(target.parent.iterdir()):
        match = pattern.fullmatch(left.name)
        if match is None or _runs(int(match[1])):
            continue
        if match[2] == "old" and not target.exists():
            left.rename(target)
        else:
            shutil.rmtree(left, ignore_errors=True)


def _runs(process: int) -> bool:
    """Whether a process exists; ours counts, since another of its threads may write."""
    if os.name == "nt":  # where a signal 0 is no question
        return process == os.getpid()
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True
