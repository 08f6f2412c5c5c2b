"""Files that somebody writes to while they are read: noticed, and refused by name."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG

from resolvent.errors import TraceError


@contextmanager
def unchanged(path: Path) -> Iterator[None]:
    """Refuse what was read of a file inside, if the file is no longer what it was before.

    What else is wrong with it may be due to that, and is not said then. A pipe may be read once
    and has nothing to compare.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "log.csv"
    ...     written = path.write_text("a")
    ...     with unchanged(path):
    ...         written = path.write_text("ab")
    Traceback (most recent call last):
    resolvent.errors.TraceError: ...log.csv changed while it was read (it had 1 byte, and has 2): \
read it again when nobody writes to it
    """
    before = _state(path)
    try:
        yield
    except TraceError as error:
        raise (_changed(path, before) or error) from error
    if (changed := _changed(path, before)) is not None:
        raise changed


def _state(path: Path) -> tuple[int, int, int] | None:
    """Return a file's size, its number and its time of change; None if it is none."""
    try:
        told = path.stat()
    except OSError:
        return None
    return (told.st_size, told.st_ino, told.st_mtime_ns) if S_ISREG(told.st_mode) else None


def _changed(path: Path, before: tuple[int, int, int] | None) -> TraceError | None:
    now = _state(path)
    if before is None or now == before:
        return None
    if now is None:
        how = "it is gone"
    elif now[0] != before[0]:
        noun = "byte" if before[0] == 1 else "bytes"
        how = f"it had {before[0]:,} {noun}, and has {now[0]:,}"
    else:
        how = "it was written again"
    return TraceError(
        f"{path} changed while it was read ({how}): read it again when nobody writes to it"
    )
