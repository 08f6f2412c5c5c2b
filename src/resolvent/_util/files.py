"""Files written atomically."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_IMODE
from typing import BinaryIO, TypeVar

import msgspec

from resolvent.errors import ModelError, ResolventError


@contextmanager
def atomic_write(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for bytes that takes its place only when the block ends well.

    Until then they lie in a hidden file beside it, which any exception removes, Ctrl-C included.
    Leave the file open: it is flushed and closed here. A file that is replaced keeps its
    permissions; a new one has those that the user's umask allows.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder) / "answer.txt") as file:
    ...         written = file.write(b"42")
    ...     (Path(folder) / "answer.txt").read_text()
    '42'
    """
    path = Path(path)
    with _plain_errors(path):
        if path.is_dir():
            raise ResolventError(f"cannot write {path}: it is a folder; name a file")
        target = link_target(path)
        if target.exists() and not target.is_file():
            # A pipe or a device, such as /dev/stdout: nothing there to replace.
            with path.open("wb") as file:
                yield file
            return
        part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        try:
            with part.open("xb") as file:
                yield file
                file.flush()
                with suppress(FileNotFoundError):
                    os.fchmod(file.fileno(), S_IMODE(target.stat().st_mode))
                os.fsync(file.fileno())
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def link_target(path: Path) -> Path:
    """Return the target of a path after following links; it need not exist.

    Writing replaces the target, and the link stays.

    Raises:
        OSError: when links lead in a circle.
    """
    try:
        return path.resolve()
    except RuntimeError as error:  # what Python before 3.13 says of it
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from error


@contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    """Turn the system's refusals to write this file into one clear line."""
    try:
        yield
    except OSError as error:
        # Writing itself fails without a name (a full disk). A name that is not
        # beside the target belongs to some other file the block was using.
        named = error.filename
        if named is not None and not _is_beside(Path(named), path):
            raise
        if not path.parent.exists():
            reason = f"the folder {path.parent} does not exist"
        else:
            reason = (error.strerror or str(error)).lower()
        raise ResolventError(f"cannot write {path}: {reason}") from error


def _is_beside(named: Path, path: Path) -> bool:
    return named == path or link_target(named).parent == link_target(path).parent


T = TypeVar("T")


def read_json(path: str | Path, kind: type[T], wanted: str) -> T:
    """Read a JSON file whose values must have a type; `wanted` describes the expected file.

    Raises:
        ModelError: when the file is missing, cannot be read, is not UTF-8, nested too deep, or
            holds something else.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "sizes.json"
    ...     written = path.write_text('{"width": 3}')
    ...     read_json(path, dict[str, int], "a table of sizes")
    {'width': 3}
    """
    try:
        return decode_json(Path(path).read_bytes(), kind)
    except FileNotFoundError:
        raise ModelError(f"{path}: there is no such file") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ModelError(f"{path} cannot be read: {reason}") from error
    except ValueError as error:
        raise ModelError(f"{path}: not {wanted}: {error}") from error


def read_content(path: str | Path) -> bytes:
    """Return the content of a file; `ModelError` says in one line why it cannot be read."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise ModelError(f"{path} does not exist") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from error


def decode_json(content: bytes, kind: type[T]) -> T:
    """Decode JSON whose values must have a type; `ValueError` describes the mismatch.

    >>> decode_json(b'["a"]', list[int])
    Traceback (most recent call last):
    ValueError: Expected `int`, got `str` - at `$[0]`
    """
    try:
        return msgspec.json.decode(content, type=kind)
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8") from error
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    except (msgspec.DecodeError, OverflowError) as error:
        raise ValueError(str(error)) from error
