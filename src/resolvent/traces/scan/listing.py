"""List the Parquet files of a path, glob or address, or of a list of these.

Files and folders whose names begin with a dot or an underscore are not read: Hive and Spark store
metadata there. Of nested folders only partitions, named `key=value`, are read; others need a glob.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from glob import iglob
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from resolvent._util.storage import (
    file_system,
    is_address,
    path_of,
    reaching,
    root_of,
    without_secrets,
)
from resolvent._util.text import amount, short
from resolvent.errors import TraceError
from resolvent.traces.io.errors import first_line

SUFFIX = ".parquet"
_GLOB = re.compile(r"[*?\[]")
_PARTITION = re.compile(r"([^=]+)=(.*)")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class StoredFile:
    """A file, on this machine or elsewhere.

    Attributes:
        name: Its name in errors.
        path: Its path in its file system.
        root: The address of that file system; None on this machine.
    """

    name: str
    path: str
    root: str | None = None

    @property
    def keys(self) -> dict[str, str | None]:
        """The partition keys in its path, and their values.

        >>> StoredFile("x", "/data/day=3/city=S%C3%A3o/x.parquet").keys
        {'day': '3', 'city': 'São'}
        """
        matches = (_PARTITION.fullmatch(part) for part in self.path.split("/")[:-1])
        return {
            unquote(match[1]): None if match[2] == _NO_VALUE else unquote(match[2])
            for match in matches
            if match
        }


def is_glob(place: str) -> bool:
    """Whether a text is a glob; in addresses `?` begins the options.

    >>> is_glob("logs/*.parquet"), is_glob("logs"), is_glob("s3://bucket/logs?region=eu-west-1")
    (True, False, False)
    """
    return bool(_GLOB.search(place.partition("?")[0] if is_address(place) else place))


def uri_text(place: Any) -> str:
    """Return a place as a text: a path, an address without secrets, or the first of a list.

    >>> uri_text("s3://key:secret@bucket/logs"), uri_text(["a.parquet", "b.parquet"])
    ('s3://bucket/logs', 'a.parquet and 1 more')
    """
    if isinstance(place, str | Path):
        return without_secrets(str(place)) if is_address(place) else str(place)
    first, *rest = map(uri_text, place)
    return f"{first} and {len(rest):,} more" if rest else first


def files_of(place: Any) -> list[StoredFile]:
    """Return the Parquet files of a place, those of a folder or glob sorted by path.

    Raises:
        TraceError: when there are none.
    """
    if not isinstance(place, str | Path):
        return _files_of_list(place)
    text = str(place)
    if not text:
        raise TraceError("the place is empty: give a folder, a file, a glob or an address")
    if is_address(text):
        return _files_of_address(text)
    return _files_of_path(text)


def _files_of_list(places: Any) -> list[StoredFile]:
    try:
        listed = None if isinstance(places, bytes) else list(places)
    except TypeError:
        listed = None
    if listed is None:
        raise TraceError(
            f"a value of type {type(places).__name__} is no place: give a folder, a file, a glob, "
            f"an address, or a list of these"
        )
    if not listed:
        raise TraceError("the list of places is empty: name at least one file")
    for place in listed:
        if not isinstance(place, str | Path):
            raise TraceError(
                f"a {type(place).__name__} in the list is no place: give paths and addresses"
            )
    files = [file for place in listed for file in files_of(place)]
    seen: set[tuple[str | None, str]] = set()
    for file in files:
        if (file.root, file.path) in seen:
            raise TraceError(f"{file.name} is in the list twice: name it once")
        seen.add((file.root, file.path))
    return files


def _files_of_path(text: str) -> list[StoredFile]:
    path = Path(text)
    try:
        path.stat()
        there = True
    except (FileNotFoundError, NotADirectoryError):
        there = False  # a glob, perhaps
    except (OSError, ValueError) as error:  # a name that is too long, a folder that is closed
        raise TraceError(f"{short(text)} cannot be looked at ({first_line(error)})") from error
    if path.is_dir():
        return _parquet_in(text, None, str(path.absolute()), str(path))
    if there:
        return [StoredFile(text, str(path.absolute()))]
    if not is_glob(text):
        raise TraceError(f"{text} does not exist")
    matches = sorted(
        (match for match in iglob(text, recursive=True) if not _hidden(match, text)),  # noqa: PTH207
        key=lambda match: Path(match).parts,
    )
    files = []
    for match in matches:
        if Path(match).is_dir():
            files += _listed(None, str(Path(match).absolute()), match)[0]
        else:
            files.append(StoredFile(match, str(Path(match).absolute())))
    return _not_empty(files, text)


def _hidden(match: str, pattern: str) -> bool:
    """Whether a match of a glob has a hidden name that is not part of the pattern."""
    spelled = set(Path(pattern).parts)
    return any(part[0] in "._" and part not in spelled for part in Path(match).parts)


def _files_of_address(text: str) -> list[StoredFile]:
    from pyarrow import fs

    root, path, address = root_of(text), path_of(text), without_secrets(text)
    system, prefix = file_system(root)
    if is_glob(text):
        base = path[: _GLOB.search(path).start()].rpartition("/")[0]  # type: ignore[union-attr]
        head = address[: len(address) - len(path.removeprefix(prefix))]
        with reaching(address, root):
            infos = system.get_file_info(
                fs.FileSelector(base, recursive=True, allow_not_found=True)
            )
        matches = re.compile(_as_pattern(path))
        files = [
            StoredFile(head + info.path.removeprefix(prefix), info.path, root)
            for info in infos
            if info.is_file
            and matches.fullmatch(info.path)
            and not any(part[0] in "._" for part in _parts_below(info.path, base))
        ]
        return _not_empty(sorted(files, key=lambda file: file.path.split("/")), address)
    with reaching(address, root):
        info = system.get_file_info(path.rstrip("/") or path)
    if info.is_file:
        return [StoredFile(address, path, root)]
    return _parquet_in(address, root, path.rstrip("/") or path, address.rstrip("/"))


def _as_pattern(path: str) -> str:
    r"""Return a regular expression for a glob: `*` within a name, `**/` over any folders.

    >>> _as_pattern("b/**/*-1")
    'b/(?:.*/)?[^/]*\\-1'
    """
    parts = []
    for token in re.findall(r"\*\*/|\*\*|\*|\[[^\]]*\]|.", path):
        match token:
            case "**/":
                parts.append("(?:.*/)?")
            case "**":
                parts.append(".*")
            case "*":
                parts.append("[^/]*")
            case _ if len(token) > 1:
                parts.append(token.replace("[!", "[^"))
            case _:
                parts.append(re.escape(token))
    return "".join(parts)


def _parts_below(path: str, base: str) -> list[str]:
    return [part for part in path.removeprefix(base).split("/") if part]


def _parquet_in(place: str, root: str | None, path: str, name: str) -> list[StoredFile]:
    """Return the files of a folder; the error names what it holds instead."""
    files, other_files, folders = _listed(root, path, name)
    if files:
        return files
    if root is not None and not (other_files or folders):
        raise TraceError(f"{place} does not exist, or is empty: check the address")
    if other_files:
        what = (
            f"it holds {amount(len(other_files), 'file')} of other kinds, such as {other_files[0]}"
        )
        raise TraceError(
            f"{place} is a folder without {SUFFIX} files: {what}; name a file of traces, or write "
            f"them as Parquet"
        )
    if folders:
        raise TraceError(
            f"{place} is a folder without {SUFFIX} files, but with folders such as {folders[0]}: "
            f"give a glob, '{place}/**/*{SUFFIX}'"
        )
    raise TraceError(f"{place} is a folder without {SUFFIX} files: name a file of traces")


def _listed(
    root: str | None, path: str, name: str
) -> tuple[list[StoredFile], list[str], list[str]]:
    """Return a folder's Parquet files, and the names of other files and folders in it."""
    from pyarrow import fs

    system = file_system(root)[0]
    files: list[StoredFile] = []
    other_files: list[str] = []
    folders: list[str] = []
    # Object stores list all in one request; here other folders may hold many files.
    waiting = [path]
    while waiting:
        base = waiting.pop()
        with reaching(name, root):
            selector = fs.FileSelector(base, recursive=root is not None, allow_not_found=True)
            infos = system.get_file_info(selector)
        for info in infos:
            below = _parts_below(info.path, path)
            if any(part[0] in "._" for part in below):
                continue
            nested = below[:-1] if info.is_file else below
            if not all(map(_PARTITION.fullmatch, nested)):
                folders.append(below[0])
            elif not info.is_file:
                if root is None:
                    waiting.append(info.path)
            elif below[-1].lower().endswith(SUFFIX):
                files.append(StoredFile(f"{name}/{'/'.join(below)}", info.path, root))
            else:
                other_files.append(below[-1])
    files.sort(key=lambda file: file.path.split("/"))
    return files, sorted(other_files), sorted(set(folders))


def _not_empty(files: Sequence[StoredFile], place: str) -> list[StoredFile]:
    if not files:
        raise TraceError(f"nothing matches {place}: check the pattern, and what is in the folder")
    return list(files)


def columns_at(place: Any) -> list[str]:
    """Return the columns of the first file of a place, and the keys in its path."""
    from resolvent.traces.scan.shards import read_footers

    first = files_of(place)[0]
    return [*read_footers([first], ())[1][0].schema.names, *first.keys]
