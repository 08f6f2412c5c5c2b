"""Cache the results of work on shards of files, so that an interrupted run can resume.

Input: a function of one piece and a folder or address. Output: its result, computed once for each
key. A key is a digest of all that the result depends on, so a cached result is never wrong.
"""

import hashlib
import re
import secrets
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit

import numpy as np

from resolvent._util.files import atomic_write
from resolvent._util.parallel import Report, Workers
from resolvent.errors import OptionError, ResumeWarning, TraceError

Piece = TypeVar("Piece")
Result = TypeVar("Result")

_FORMAT = 3
"""To be raised whenever the same work gives another result, or the same data another meaning."""

_MAGIC = b"resolvent kept 1\n"
"""Beginning of a file. Its number is that of the layout of files, not of their content."""

_DIGEST = 32
"""Bytes of the digest in a file."""

_SUFFIX = ".kept"
_OBJECT_STORES = ("s3", "gs", "gcs", "abfs", "abfss")
"""Schemes of addresses where a file appears only once it is complete."""

_PLAIN = {type(None), bool, float, str, bytes}
_DTYPE = re.compile(r"[<>|][biufcSUV][0-9]{1,9}")
"""NumPy's name for a type of numbers or texts."""

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


class _Codec(NamedTuple):
    to_parts: Callable[[Any], Iterable[Any]]
    from_parts: Callable[[list[Any]], Any]


_codecs: dict[str, tuple[type, _Codec]] = {}
_names: dict[type, str] = {}


def register_type(
    cls: type, to_parts: Callable[[Any], Iterable[Any]], from_parts: Callable[[list[Any]], Any]
) -> None:
    """Let `Packing` read and write objects of a class, as a list of plain parts."""
    _codecs[cls.__name__] = cls, _Codec(to_parts, from_parts)
    _names[cls] = cls.__name__


@dataclass(frozen=True)
class Packing:
    """Plain data ↔ bytes, with records of some types: dataclasses, named tuples, enumerations.

    Numbers, texts, arrays and collections come back equal and of the same type: 1, 1.0 and True
    stay different. Bytes make no object but of `kinds`, so they may come from anywhere.

    >>> packing = Packing()
    >>> packing.unpack(packing.pack({"a": (1, 1.0, frozenset("b"))}))
    {'a': (1, 1.0, frozenset({'b'}))}
    >>> packing.unpack(packing.pack(np.arange(3, dtype=np.int16)))
    array([0, 1, 2], dtype=int16)
    """

    kinds: tuple[type, ...] = ()

    def pack(self, value: Any) -> bytes:
        """Return a value as bytes; `TypeError` if it is neither plain nor of `kinds`."""
        import msgspec

        allowed = {*self.kinds}

        def name_of(cls: type) -> str:
            if cls not in allowed:
                raise TypeError(f"a {cls.__name__} is no plain data")
            return cls.__name__

        return msgspec.msgpack.encode(_packed(value, name_of))

    def unpack(self, content: bytes) -> Any:
        """Return the value encoded in bytes; `ValueError` if they encode none."""
        import msgspec

        named = {cls.__name__: cls for cls in self.kinds}
        try:
            return _unpacked(msgspec.msgpack.decode(content), named)
        except (msgspec.DecodeError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise ValueError(f"no packed data ({error})") from error


def digest_of(*values: Any) -> str:
    """Return a SHA-256 of values, the same for equal values; a dataclass is its name and fields.

    >>> digest_of(1, "a") == digest_of(1, "a"), digest_of(1) == digest_of(1.0)
    (True, False)
    """
    import msgspec

    packed = _packed(values, lambda cls: f"{cls.__module__}.{cls.__qualname__}")
    return hashlib.sha256(msgspec.msgpack.encode(packed)).hexdigest()


def _packed(value: Any, name_of: Callable[[type], str]) -> Any:
    """Return a value for msgpack: all but plain ones are lists that begin with a tag."""
    cls = type(value)
    if cls in _PLAIN:
        return value
    if cls is int:
        return value if _INT64_MIN <= value <= _INT64_MAX else ["int", str(value)]
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise TypeError("an array of Python objects is no plain data")
        descr = _packed(np.lib.format.dtype_to_descr(value.dtype), name_of)
        return ["array", descr, list(value.shape), np.ascontiguousarray(value).tobytes()]
    if cls is tuple or cls is list:
        return [cls.__name__, _all(value, name_of)]
    if cls is frozenset:
        import msgspec

        parts = _all(value, name_of)
        return ["frozenset", sorted(parts, key=msgspec.msgpack.encode)]
    if cls in _names:
        name = _names[cls]
        return [name, _all(_codecs[name][1].to_parts(value), name_of)]
    if isinstance(value, Enum):
        return ["enum", name_of(cls), _packed(value.value, name_of)]
    if is_dataclass(value):
        parts = [getattr(value, field.name) for field in fields(value) if field.init]
        return ["record", name_of(cls), _all(parts, name_of)]
    if isinstance(value, tuple):  # a named one
        return ["record", name_of(cls), _all(value, name_of)]
    if isinstance(value, Mapping):
        return ["dict", _all(value.keys(), name_of), _all(value.values(), name_of)]
    raise TypeError(f"a {cls.__name__} is no plain data")


def _all(values: Iterable[Any], name_of: Callable[[type], str]) -> list[Any]:
    listed = list(values)
    types = set(map(type, listed))  # vocabularies may be long, and are of one type mostly
    if types <= _PLAIN:
        return listed
    if types == {int} and min(listed) >= _INT64_MIN and max(listed) <= _INT64_MAX:
        return listed
    return [_packed(value, name_of) for value in listed]


def _unpacked(packed: Any, named: Mapping[str, type]) -> Any:
    if type(packed) is not list:
        return packed
    tag, *parts = packed
    match tag:
        case "int":
            return int(parts[0])
        case "array":
            descr, shape, content = parts
            dtype = np.lib.format.descr_to_dtype(_checked(_unpacked(descr, named)))
            return np.frombuffer(content, dtype).reshape(shape).copy()
        case "tuple":
            return tuple(_each(parts[0], named))
        case "list":
            return _each(parts[0], named)
        case "frozenset":
            return frozenset(_each(parts[0], named))
        case "enum":
            return named[parts[0]](_unpacked(parts[1], named))
        case "record":
            return named[parts[0]](*_each(parts[1], named))
        case "dict":
            keys, values = (_each(part, named) for part in parts)
            return dict(zip(keys, values, strict=True))
        case str() if tag in _codecs:
            return _codecs[tag][1].from_parts(_each(parts[0], named))
    raise ValueError(f"no packed data (there is a {str(tag)[:20]!r})")


def _checked(descr: Any) -> Any:
    """Return the type of an array, in NumPy's present names: it warns of older ones."""
    if isinstance(descr, list):  # columns: a name, a type, perhaps a shape
        for column in descr:
            _checked(column[1] if isinstance(column, tuple) else column)
    elif isinstance(descr, tuple):  # rows of numbers: a type and a length
        _checked(descr[0])
    elif not (isinstance(descr, str) and _DTYPE.fullmatch(descr)):
        raise ValueError(f"no packed data (an array of {str(descr)[:20]!r})")
    return descr


def _each(parts: list[Any], named: Mapping[str, type]) -> list[Any]:
    if list not in set(map(type, parts)):
        return parts
    return [_unpacked(part, named) for part in parts]


@dataclass(frozen=True)
class Store:
    """Bytes under keys, in a folder or at an address that PyArrow opens, such as `s3://b/runs`.

    A file appears only once it is complete. It is checked whenever it is read: one that is damaged
    or foreign counts as missing, with a warning.

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
        if not self._is_address:
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
    def _is_address(self) -> bool:
        return "://" in self.place

    def get(self, key: str) -> bytes | None:
        """Return the bytes under a key; None if there are none, or if they are damaged."""
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
        """Warn that the file of a key is unusable, and is made again."""
        why = "is damaged, or of another version, and is made again"
        warnings.warn(f"{self._display_name}/{_name(key)} {why}", ResumeWarning, stacklevel=3)

    def put(self, key: str, content: bytes) -> None:
        """Write bytes under a key, replacing existing ones."""
        packed = zlib.compress(content, 1)
        content = _MAGIC + _digest(key, packed) + packed
        if not self._is_address:
            path = Path(self.place) / _name(key)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise OptionError(
                    f"resume: the folder {path.parent} cannot be made "
                    f"({(error.strerror or str(error)).lower()}): name another one"
                ) from error
            with atomic_write(path) as file:
                file.write(content)
            return
        system, remote_path, root = self._located(key)
        with _reaching(self._display_name, root):
            folder = remote_path.rpartition("/")[0]
            if urlsplit(self.place).scheme in _OBJECT_STORES:
                with system.open_output_stream(remote_path) as stream:
                    stream.write(content)
                return
            system.create_dir(folder, recursive=True)
            part = f"{folder}/.{secrets.token_hex(8)}.part"
            with system.open_output_stream(part) as stream:
                stream.write(content)
            system.move(part, remote_path)

    def _read(self, key: str) -> bytes | None:
        if not self._is_address:
            try:
                return (Path(self.place) / _name(key)).read_bytes()
            except FileNotFoundError:
                return None
            except OSError as error:
                raise TraceError(
                    f"{self._display_name}/{_name(key)} cannot be read "
                    f"({(error.strerror or str(error)).lower()}): name another folder"
                ) from error
        from pyarrow import fs

        system, path, root = self._located(key)
        with _reaching(self._display_name, root):
            info = system.get_file_info(path)
            if info.type is not fs.FileType.File:
                return None
            with system.open_input_file(path) as stream:
                content: bytes = stream.read()
                return content

    def _located(self, key: str) -> tuple[Any, str, str]:
        from resolvent._util.storage import file_system, path_of, root_of

        root = root_of(self.place)
        return file_system(root)[0], f"{path_of(self.place).rstrip('/')}/{_name(key)}", root

    @property
    def _display_name(self) -> str:
        if not self._is_address:
            return self.place
        from resolvent._util.storage import without_secrets

        return without_secrets(self.place).rstrip("/")


def _name(key: str) -> str:
    return f"{key[:2]}/{key}{_SUFFIX}"


def _digest(key: str, packed: bytes) -> bytes:
    return hashlib.blake2b(packed, digest_size=_DIGEST, person=b"kept", key=key.encode()).digest()


def _reaching(name: str, root: str) -> Any:
    from resolvent._util.storage import reaching

    return reaching(name, root)


class FingerprintedSource(Protocol):
    """A source of shards, as far as the cache needs it."""

    def fingerprint(self, shard: int) -> Any:
        """Return all that the shard depends on, as plain data; None if it is in memory."""


@dataclass(frozen=True)
class CachedType:
    """The type of the results of some work, and the types of the records in them."""

    made: type
    kinds: tuple[type, ...] = ()


@dataclass(frozen=True)
class CachedFunction(Generic[Piece, Result]):
    """A function of shards that looks for its result in a store first, and puts it there.

    A piece is a shard's number, or a tuple that begins with it. `depends` is a digest of the
    function without `source`. It runs wherever the work is done, so that no finished result is
    lost with the process that asked for it.
    """

    function: Callable[[Piece], Result]
    store: Store
    source: FingerprintedSource
    depends: str
    results: CachedType

    def __call__(self, piece: Piece) -> Result:
        """Return the cached result of a piece, or compute and cache it."""
        key = self.key(piece)
        if key is None:
            return self.function(piece)
        content = self.store.get(key)
        if content is not None:
            try:
                return self._unpacked(content)
            except ValueError:  # complete, but written by another version
                self.store.distrust(key)
        result = self.function(piece)
        self.store.put(key, self._packing.pack(result))
        return result

    def key(self, piece: Piece) -> str | None:
        """Return a digest of all that the result depends on; None for traces in memory."""
        shard: Any = piece[0] if isinstance(piece, tuple) else piece
        fingerprint = self.source.fingerprint(shard)
        return None if fingerprint is None else digest_of(self.depends, fingerprint, piece)

    def _unpacked(self, content: bytes) -> Result:
        result: Result = self._packing.unpack(content)
        if type(result) is not self.results.made:
            raise ValueError(f"a {type(result).__name__} instead of a {self.results.made.__name__}")
        return result

    @cached_property
    def _packing(self) -> Packing:
        return Packing(self.results.kinds)


@dataclass(frozen=True)
class CachingWorkers:
    """Workers that cache results: each is computed once for all that it depends on.

    That is the function with all its fields, and the piece, with the state of its files when
    they were opened. `results` lists the functions whose results are cached.
    """

    workers: Workers
    store: Store
    results: Mapping[type, CachedType]

    @property
    def name(self) -> str:
        """The name of the workers in `on=`."""
        return self.workers.name

    def each(
        self,
        work: Callable[[Piece], Result],
        pieces: Sequence[Piece],
        *,
        called: str,
        report: Report | None = None,
    ) -> Iterator[Result]:
        """Yield the results in the order of the pieces."""
        return self.workers.each(self.cached(work), pieces, called=called, report=report)

    def together(
        self,
        work: Callable[[Piece], Result],
        pieces: Sequence[Piece],
        combine: Callable[[Result, Result], Result],
        *,
        called: str,
        report: Report | None = None,
    ) -> Result:
        """Return the results combined in the order of the pieces."""
        cached = self.cached(work)
        return self.workers.together(cached, pieces, combine, called=called, report=report)

    def first(
        self,
        work: Callable[[Piece], Result],
        pieces: Sequence[Piece],
        enough: Callable[[Result], bool],
        *,
        called: str,
    ) -> list[Result | None]:
        """Work on all pieces at once until a result is `enough`; nothing is cached."""
        return self.workers.first(work, pieces, enough, called=called)

    def close(self) -> None:
        """Release the workers; more work starts them again."""
        self.workers.close()

    def cached(self, work: Callable[[Piece], Result]) -> Callable[[Piece], Result]:
        """Return a function with its results cached, or as it is if they cannot be."""
        results = self.results.get(type(work))
        if results is None:
            return work
        sources, rest = _split(work)
        if len(sources) != 1:
            return work
        try:
            depends = digest_of(_FORMAT, version("resolvent"), rest)
        except TypeError:  # a field is no plain data
            return work
        return CachedFunction(work, self.store, sources[0], depends, results)


def _split(work: Any) -> tuple[list[FingerprintedSource], Any]:
    """Return the sources among the fields of a dataclass, and plain data of all the rest."""
    sources: list[FingerprintedSource] = []

    def rest(value: Any) -> Any:
        if hasattr(value, "fingerprint"):
            sources.append(value)
            return None
        if is_dataclass(value) and not isinstance(value, type):
            of_fields = [rest(getattr(value, field.name)) for field in fields(value)]
            return [f"{type(value).__module__}.{type(value).__qualname__}", of_fields]
        return value

    return sources, rest(work)
