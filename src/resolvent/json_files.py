"""A file of JSON → values of a type, or one line that says what is wrong with the file."""

from pathlib import Path
from typing import TypeVar

import msgspec

from resolvent.errors import ModelError

T = TypeVar("T")


def read_json(path: str | Path, kind: type[T], wanted: str) -> T:
    """Read a JSON file whose values have to be of a type; `wanted` says what the file should be.

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
    """Return what a file holds; `ModelError` says in one line why it cannot be read."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise ModelError(f"{path} does not exist") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from error


def decode_json(content: bytes, kind: type[T]) -> T:
    """Decode JSON whose values have to be of a type; `ValueError` says in words why it is not.

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
