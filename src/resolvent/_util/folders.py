"""Folders written whole or not at all, whatever happens meanwhile."""

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
    """Give a new folder that takes the place of one when the block ends well.

    The one that is there may hold these files alone. Whoever is killed between two names leaves
    the old one under a hidden name: `recover` brings it back.
    """
    try:
        if folder.exists() and not folder.is_dir():
            raise ResolventError(f"cannot write {folder}: it is a file; name a folder")
        if folder.is_dir() and any(one.name not in files for one in folder.iterdir()):
            raise ResolventError(
                f"cannot write {folder}: it holds other things; name a new folder, or an empty one"
            )
        recover(folder)
        target = folder.resolve()
    except OSError as error:
        raise ResolventError(f"cannot write {short(str(folder))}: {error.strerror}") from error
    mark = f"{os.getpid()}-{next(_numbers)}"
    made = target.with_name(f".{target.name}.{mark}.part")
    old = target.with_name(f".{target.name}.{mark}.old")
    try:
        made.mkdir(parents=True)
        yield made
        if target.exists():
            target.rename(old)
        made.rename(target)
    except OSError as error:
        raise ResolventError(f"cannot write {folder}: {error.strerror}") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)
        elif old.exists():
            old.rename(target)


def recover(folder: Path) -> None:
    """Bring back a folder whose writer was killed, and remove what it left behind.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     (Path(place) / ".solved.999999999-0.old").mkdir()
    ...     recover(Path(place) / "solved")
    ...     [one.name for one in Path(place).iterdir()]
    ['solved']
    """
    target = folder.resolve()
    if not target.parent.is_dir():
        return
    pattern = re.compile(rf"\.{re.escape(target.name)}\.(\d+)-\d+\.(part|old)")
    for left in sorted(target.parent.iterdir()):
        found = pattern.fullmatch(left.name)
        if found is None or _runs(int(found[1])):
            continue
        if found[2] == "old" and not target.exists():
            left.rename(target)
        else:
            shutil.rmtree(left, ignore_errors=True)


def _runs(process: int) -> bool:
    """Whether there is such a process; ours counts, since another thread of it may write."""
    if os.name == "nt":  # where a signal 0 is no question
        return process == os.getpid()
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True
