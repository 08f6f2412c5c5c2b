"""Cache the results of work on shards of files, so that an interrupted run can resume.

Input: a function of one item and a folder or address. Output: its result, computed once for each
key. A key is a digest of all that the result depends on, so a cached result is never wrong.
"""

import hashlib
import re
import secrets
import warnings
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

import msgspec
import numpy as np

from resolvent._util.files import (
    atomic_write,
    explain_storage_errors,
    file_system,
    is_address,
    path_of,
    reason_of,
    root_of,
    without_secrets,
)
from resolvent.errors import OptionError, ResumeWarning, TraceError

Item = TypeVar("Item")
Result = TypeVar("Result")

_FORMAT = 3
"""To be raised whenever the same work gives another result, or the same data another meaning."""

# --- Plain data as bytes ------------------------------------------------------------------------

_PLAIN = {type(None), bool, float, str, bytes}
_DTYPE = re.compile(r"[<>|][biufcSUV][0-9]{1,9}")  # NumPy's name for a type of numbers or texts
_INT64 = range(-(2**63), 2**63)
_NameOf = Callable[[type], str]
_registered: dict[str, tuple[type, Callable[[Any], Iterable[Any]], Callable[[list[Any]], Any]]] = {
    "tuple": (tuple, list, tuple),
    "list": (list, list, list),
}


def register_type(
    cls: type, to_parts: Callable[[Any], Iterable[Any]], from_parts: Callable[[list[Any]], Any]
) -> None:
    """Let `pack` and `unpack` handle objects of a class, as a list of plain parts."""
    _registered[cls.__name__] = cls, to_parts, from_parts


def pack(value: Any, types: Collection[type] = ()) -> bytes:
    """Return plain data as bytes; `TypeError` if it is neither plain nor of one of the types.

    The types are dataclasses, named tuples and enumerations. Numbers, texts, arrays and
    collections come back equal and of the same type: 1, 1.0 and True stay different.
    """

    def name_of(cls: type) -> str:
        if cls not in types:
            raise TypeError(f"a {cls.__name__} is no plain data")
        return cls.__name__

    return msgspec.msgpack.encode(_packed(value, name_of))


def unpack(content: bytes, types: Iterable[type] = ()) -> Any:
    """Return the value that `pack` encoded; `ValueError` if the bytes encode none.

    Bytes make no object but of these types, so they may come from anywhere.
    """
    try:
        return _unpacked(msgspec.msgpack.decode(content), {cls.__name__: cls for cls in types})
    except (msgspec.DecodeError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise ValueError(f"no packed data ({error})") from error


def digest_of(*values: Any) -> str:
    """Return a SHA-256 of values, the same for equal values; a dataclass is its name and fields."""
    return hashlib.sha256(msgspec.msgpack.encode(_packed(values, _full_name))).hexdigest()


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _packed(value: Any, name_of: _NameOf) -> Any:
    """Return a value for msgpack: all but plain ones are lists that begin with a tag."""
    cls = type(value)
    if cls in _PLAIN:
        return value
    if cls is int:
        return value if value in _INT64 else ["int", str(value)]
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise TypeError("an array of Python objects is no plain data")
        descr = _packed(np.lib.format.dtype_to_descr(value.dtype), name_of)
        return ["array", descr, list(value.shape), np.ascontiguousarray(value).tobytes()]
    if cls is frozenset:
        parts = _all_packed(value, name_of)
        return ["frozenset", sorted(parts, key=msgspec.msgpack.encode)]
    registered, to_parts, _ = _registered.get(cls.__name__, (None, list, list))
    if registered is cls:
        return [cls.__name__, _all_packed(to_parts(value), name_of)]
    if isinstance(value, Enum):
        return ["enum", name_of(cls), _packed(value.value, name_of)]
    if is_dataclass(value):
        parts = [getattr(value, field.name) for field in fields(value) if field.init]
        return ["record", name_of(cls), _all_packed(parts, name_of)]
    if isinstance(value, tuple):  # a named one
        return ["record", name_of(cls), _all_packed(value, name_of)]
    if isinstance(value, Mapping):
        return ["dict", _all_packed(value.keys(), name_of), _all_packed(value.values(), name_of)]
    raise TypeError(f"a {cls.__name__} is no plain data")


def _all_packed(values: Iterable[Any], name_of: _NameOf) -> list[Any]:
    listed = list(values)
    types = set(map(type, listed))  # vocabularies may be long, and are of one type mostly
    if types <= _PLAIN:
        return listed
    if types == {int} and min(listed) in _INT64 and max(listed) in _INT64:
        return listed
    return [_packed(value, name_of) for value in listed]


def _unpacked(packed: Any, types: Mapping[str, type]) -> Any:
    if type(packed) is not list:
        return packed
    tag, *parts = packed
    match tag:
        case "int":
            return int(parts[0])
        case "array":
            descr, shape, content = parts
            dtype = np.lib.format.descr_to_dtype(_checked_dtype(_unpacked(descr, types)))
            return np.frombuffer(content, dtype).reshape(shape).copy()
        case "frozenset":
            return frozenset(_all_unpacked(parts[0], types))
        case "enum":
            return types[parts[0]](_unpacked(parts[1], types))
        case "record":
            return types[parts[0]](*_all_unpacked(parts[1], types))
        case "dict":
            keys, values = (_all_unpacked(part, types) for part in parts)
            return dict(zip(keys, values, strict=True))
        case str() if tag in _registered:
            return _registered[tag][2](_all_unpacked(parts[0], types))
    raise ValueError(f"no packed data (there is a {str(tag)[:20]!r})")


def _all_unpacked(parts: list[Any], types: Mapping[str, type]) -> list[Any]:
    if list not in set(map(type, parts)):
        return parts
    return [_unpacked(part, types) for part in parts]


def _checked_dtype(descr: Any) -> Any:
    """Return the type of an array, in NumPy's present names: it warns of older ones."""
    if isinstance(descr, list):  # columns: a name, a type, perhaps a shape
        for column in descr:
            _checked_dtype(column[1] if isinstance(column, tuple) else column)
    elif isinstance(descr, tuple):  # rows of numbers: a type and a length
        _checked_dtype(descr[0])
    elif not (isinstance(descr, str) and _DTYPE.fullmatch(descr)):
        raise ValueError(f"no packed data (an array of {str(descr)[:20]!r})")
    return descr


# --- Bytes under keys ---------------------------------------------------------------------------

_MAGIC = b"resolvent cache 1\n"  # with the version of the layout of files, not of their content
_DIGEST = 32  # bytes of the digest in a file
_OBJECT_STORES = ("s3", "gs", "gcs", "abfs", "abfss")  # where only complete files appear


@dataclass(frozen=True)
class Store:
    """Bytes under keys, in a folder or at an address that PyArrow opens, such as `s3://b/runs`.

    A file appears only once it is complete. It is checked whenever it is read: one that is damaged
    or foreign counts as missing, with a warning.
    """

    location: str

    def __post_init__(self) -> None:
        if not self.location:
            raise OptionError("cache_dir is empty: name a folder for results")
        if is_address(self.location):
            return
        path = Path(self.location)
        with suppress(OSError):  # a name that is too long, say: writing reports it
            if path.is_file():
                raise OptionError(f"cache_dir: {path} is a file; name a folder for results")
        # Other processes may have another working directory.
        object.__setattr__(self, "location", str(path.absolute()))

    def get(self, key: str) -> bytes | None:
        """Return the bytes under a key; None if there are none, or if they are damaged."""
        content = self._read_address(key) if is_address(self.location) else self._read_file(key)
        if content is None:
            return None
        packed = content[len(_MAGIC) + _DIGEST :]
        if content.startswith(_MAGIC + _digest(key, packed)):
            return zlib.decompress(packed)
        self.distrust(key)
        return None

    def put(self, key: str, content: bytes) -> None:
        """Write bytes under a key, replacing existing ones."""
        packed = zlib.compress(content, 1)
        content = _MAGIC + _digest(key, packed) + packed
        if is_address(self.location):
            self._write_address(key, content)
            return
        path = Path(self.location) / _name(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OptionError(
                f"cache_dir: the folder {path.parent} cannot be created ({reason_of(error)}): name "
                f"another folder"
            ) from error
        with atomic_write(path) as file:
            file.write(content)

    def distrust(self, key: str) -> None:
        """Warn that the file of a key is unusable, and is made again."""
        location = self.location
        if is_address(location):
            location = without_secrets(location).rstrip("/")
        what = "is damaged, or of another version, and is computed again"
        warnings.warn(f"{location}/{_name(key)} {what}", ResumeWarning, stacklevel=3)

    def _read_file(self, key: str) -> bytes | None:
        path = Path(self.location) / _name(key)
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise TraceError(
                f"{path} cannot be read ({reason_of(error)}): name another folder"
            ) from error

    def _read_address(self, key: str) -> bytes | None:
        with self._opened(key) as (system, path):
            if not system.get_file_info(path).is_file:
                return None
            with system.open_input_file(path) as stream:
                content: bytes = stream.read()
                return content

    def _write_address(self, key: str, content: bytes) -> None:
        is_atomic = urlsplit(self.location).scheme in _OBJECT_STORES
        with self._opened(key) as (system, path):
            folder = path.rpartition("/")[0]
            part = path if is_atomic else f"{folder}/.{secrets.token_hex(8)}.part"
            if not is_atomic:
                system.create_dir(folder, recursive=True)
            with system.open_output_stream(part) as stream:
                stream.write(content)
            if not is_atomic:
                system.move(part, path)

    @contextmanager
    def _opened(self, key: str) -> Iterator[tuple[Any, str]]:
        """Yield the file system of the file of a key, and its path there."""
        root = root_of(self.location)
        path = f"{path_of(self.location).rstrip('/')}/{_name(key)}"
        with explain_storage_errors(without_secrets(self.location), root):
            yield file_system(root)[0], path


def _name(key: str) -> str:
    return f"{key[:2]}/{key}.cache"


def _digest(key: str, packed: bytes) -> bytes:
    return hashlib.blake2b(packed, digest_size=_DIGEST, person=b"cache", key=key.encode()).digest()


# --- Functions with cached results --------------------------------------------------------------


@dataclass(frozen=True)
class CachedFunction(Generic[Item, Result]):
    """A function of shards that looks for its result in a store first, and puts it there.

    An item is a shard's number, or a tuple that begins with it. `source` reads the shards: its
    `fingerprint` is all that one depends on, or None if it is in memory. `depends` is a digest of
    the function without `source`; `types` are those of the result and of the records in it. It
    runs in the worker, so that no finished result is lost with the calling process.
    """

    function: Callable[[Item], Result]
    store: Store
    source: Any
    depends: str
    types: tuple[type, ...]

    def __call__(self, item: Item) -> Result:
        """Return the cached result of an item, or compute and cache it."""
        key = self.key(item)
        if key is None:
            return self.function(item)
        content = self.store.get(key)
        if content is not None:
            with suppress(ValueError):
                cached_result: Result = unpack(content, self.types)
                if type(cached_result) is self.types[0]:
                    return cached_result
            self.store.distrust(key)  # it is complete, but written by another version
        result = self.function(item)
        self.store.put(key, pack(result, self.types))
        return result

    def key(self, item: Item) -> str | None:
        """Return a digest of all that the result depends on; None for traces in memory."""
        shard: Any = item[0] if isinstance(item, tuple) else item
        fingerprint = self.source.fingerprint(shard)
        return None if fingerprint is None else digest_of(self.depends, fingerprint, item)


def cached(function: Callable[[Item], Result], store: Store | None) -> Callable[[Item], Result]:
    """Return a function with its results cached, each once for all that it depends on.

    That is the function with all its fields, and the item, with the state of its files when they
    were opened. The function is a dataclass; one of its fields is the source that it reads, and
    its `result_types` are the type of results and those of the records in them. Without a store,
    or if a field is no plain data, it is returned as it is.
    """
    if store is None:
        return function
    sources: list[Any] = []

    def without_sources(value: Any) -> Any:
        if hasattr(value, "fingerprint"):
            sources.append(value)
            return None
        if is_dataclass(value) and not isinstance(value, type):
            parts = [without_sources(getattr(value, field.name)) for field in fields(value)]
            return [_full_name(type(value)), parts]
        return value

    rest = without_sources(function)
    if len(sources) != 1:
        return function
    try:
        depends = digest_of(_FORMAT, version("resolvent"), rest)
    except TypeError:
        return function
    types = function.result_types  # type: ignore[attr-defined]
    return CachedFunction(function, store, sources[0], depends, types)
