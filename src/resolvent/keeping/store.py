"""A folder, here or at an address, in which results lie under keys, whole or not at all."""

import hashlib
import secrets
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from resolvent.atomic_file import atomic_write
from resolvent.errors import OptionError, ResumeWarning, TraceError

_MAGIC = b"resolvent kept 1\n"
"""What a file begins with. Its number is that of the layout of files, not of what they hold."""

_DIGEST = 32
_SUFFIX = ".kept"
_OBJECTS = ("s3", "gs", "gcs", "abfs", "abfss")
"""Where a file appears only once it is whole."""


@dataclass(frozen=True)
class Store:
    """Results under keys, in a folder or at an address that PyArrow opens, such as `s3://b/runs`.

    A key is a digest of all that a result depends on. What lies there is checked whenever it is
    taken out: a file that is damaged, or of somebody else, counts as none, and a warning says so.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     store.put("ab12", b"an answer")
    ...     store.get("ab12"), store.get("cd34")
    (b'an answer', None)
    """

    place: str

    def __post_init__(self) -> None:
        if not self.place:
            raise OptionError("resume is empty: name a folder to keep results in")
        if not self._is_elsewhere:
            path = Path(self.place)
            try:
                is_file = path.exists() and not path.is_dir()
            except (OSError, ValueError) as error:  # a name that is too long, say
                raise OptionError(f"resume: no folder can be there ({error})") from error
            if is_file:
                raise OptionError(f"resume: {path} is a file; name a folder to keep results in")
            # Other processes may have another working directory.
            object.__setattr__(self, "place", str(path.absolute()))

    @property
    def _is_elsewhere(self) -> bool:
        return "://" in self.place

    def get(self, key: str) -> bytes | None:
        """Return what was kept under a key; None if nothing was, or if it is damaged."""
        content = self._read(key)
        if content is None:
            return None
        head, digest, packed = (
            content[: len(_MAGIC)],
            content[len(_MAGIC) : len(_MAGIC) + _DIGEST],
            content[len(_MAGIC) + _DIGEST :],
        )
        if head == _MAGIC and digest == _digest(key, packed):
            return zlib.decompress(packed)
        self.distrust(key)
        return None

    def distrust(self, key: str) -> None:
        """Warn that what lies under a key is of no use, and is made again."""
        why = "is damaged, or of another version, and is made again"
        warnings.warn(f"{self._shown}/{_name(key)} {why}", ResumeWarning, stacklevel=3)

    def put(self, key: str, content: bytes) -> None:
        """Keep something under a key, instead of what was there."""
        packed = zlib.compress(content, 1)
        whole = _MAGIC + _digest(key, packed) + packed
        if not self._is_elsewhere:
            path = Path(self.place) / _name(key)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise OptionError(
                    f"resume: the folder {path.parent} cannot be made "
                    f"({(error.strerror or str(error)).lower()}): name another one"
                ) from error
            with atomic_write(path) as file:
                file.write(whole)
            return
        system, path_there, root = self._elsewhere(key)
        with _reaching(self._shown, root):
            folder = path_there.rpartition("/")[0]
            if urlsplit(self.place).scheme in _OBJECTS:
                with system.open_output_stream(path_there) as stream:
                    stream.write(whole)
                return
            system.create_dir(folder, recursive=True)
            part = f"{folder}/.{secrets.token_hex(8)}.part"
            with system.open_output_stream(part) as stream:
                stream.write(whole)
            system.move(part, path_there)

    def _read(self, key: str) -> bytes | None:
        if not self._is_elsewhere:
            try:
                return (Path(self.place) / _name(key)).read_bytes()
            except FileNotFoundError:
                return None
            except OSError as error:
                raise TraceError(
                    f"{self._shown}/{_name(key)} cannot be read "
                    f"({(error.strerror or str(error)).lower()}): name another folder"
                ) from error
        from pyarrow import fs

        system, path, root = self._elsewhere(key)
        with _reaching(self._shown, root):
            info = system.get_file_info(path)
            if info.type is not fs.FileType.File:
                return None
            with system.open_input_file(path) as stream:
                found: bytes = stream.read()
                return found

    def _elsewhere(self, key: str) -> tuple[Any, str, str]:
        from resolvent.traces.places.addresses import file_system, path_of, root_of

        root = root_of(self.place)
        return file_system(root)[0], f"{path_of(self.place).rstrip('/')}/{_name(key)}", root

    @property
    def _shown(self) -> str:
        if not self._is_elsewhere:
            return self.place
        from resolvent.traces.places.addresses import without_secrets

        return without_secrets(self.place).rstrip("/")


def _name(key: str) -> str:
    return f"{key[:2]}/{key}{_SUFFIX}"


def _digest(key: str, packed: bytes) -> bytes:
    return hashlib.blake2b(packed, digest_size=_DIGEST, person=b"kept", key=key.encode()).digest()


def _reaching(name: str, root: str) -> Any:
    from resolvent.traces.places.addresses import reaching

    return reaching(name, root)
