"""A path, glob or address, or a list of these → the Parquet files there.

Files and folders whose names begin with a dot or an underscore are not read: Hive and Spark store
metadata there. Of nested folders only partitions, named `key=value`, are read; others need a glob.
"""

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from resolvent._util.files import (
    explain_storage_errors,
    file_system,
    is_address,
    path_of,
    root_of,
    without_secrets,
)
from resolvent._util.text import amount, short
from resolvent._util.validation import is_zero_dim
from resolvent.errors import TraceError

SUFFIX = ".parquet"
_GLOB = re.compile(r"[*?\[]")
_PARTITION = re.compile(r"([^=]+)=(.*)")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class StoredFile(NamedTuple):
    """A file or folder: its name in errors, path, and file system by its address.

    The file system of this machine is None. The name ends as the path does.
    """

    name: str
    path: str
    root: str | None = None

    @classmethod
    def of(cls, text: str) -> "StoredFile":
        """Return what a path or address names."""
        if is_address(text):
            return cls(without_secrets(text), path_of(text), root_of(text))
        return cls(text, str(Path(text).absolute()))

    @property
    def keys(self) -> dict[str, str | None]:
        """The partition keys in its path, and their values."""
        matches = (_PARTITION.fullmatch(part) for part in self.path.split("/")[:-1])
        return {
            unquote(match[1]): None if match[2] == _NO_VALUE else unquote(match[2])
            for match in matches
            if match
        }

    def below(self, path: str) -> str:
        """Return the name of a file or folder here."""
        return f"{self.name.rstrip('/')}/{path[len(self.path.rstrip('/')) + 1 :]}"

    def infos(self, *, recursive: bool) -> list[Any]:
        """Return what a folder holds; nothing if it does not exist."""
        from pyarrow import fs

        selector = fs.FileSelector(self.path, recursive=recursive, allow_not_found=True)
        with explain_storage_errors(self.name, self.root):
            return list(file_system(self.root)[0].get_file_info(selector))


def is_glob(location: str) -> bool:
    """Return whether a text is a glob; in addresses `?` begins the options."""
    return bool(_GLOB.search(location.partition("?")[0] if is_address(location) else location))


def uri_text(location: Any) -> str:
    """Return a location as a text: a path, an address without secrets, or the first of a list."""
    if isinstance(location, str | Path):
        return without_secrets(str(location)) if is_address(location) else str(location)
    first, *rest = map(uri_text, location)
    return f"{first} and {len(rest):,} more" if rest else first


def files_of(location: Any) -> list[StoredFile]:
    """Return the Parquet files of a location, sorted by path; `TraceError` if there are none."""
    if not isinstance(location, str | Path):
        return _files_of_list(location)
    text = str(location)
    if not text:
        raise TraceError("the location is empty: give a folder, a file, a glob or an address")
    try:
        base = StoredFile.of(text)
        with explain_storage_errors(base.name, base.root):
            info = file_system(base.root)[0].get_file_info(base.path.rstrip("/") or base.path)
    except ValueError as error:  # no file can have this name
        raise TraceError(f"{short(text)} cannot be read ({error})") from error
    if is_glob(text) and info.type.name == "NotFound":
        return _files_of_glob(base)
    if info.type.name == "Directory" or (base.root and not info.is_file):
        return _files_of_folder(base)
    if info.type.name == "NotFound":
        raise TraceError(f"{text} does not exist")
    return [base]


def _files_of_list(locations: Any) -> list[StoredFile]:
    is_list = isinstance(locations, Iterable) and not isinstance(locations, bytes)
    if not is_list or is_zero_dim(locations):
        raise TraceError(
            f"a value of type {type(locations).__name__} is not a location: give a folder, a "
            f"file, a glob, an address, or a list of these"
        )
    files: dict[tuple[str, str | None], StoredFile] = {}
    for location in locations:
        if not isinstance(location, str | Path):
            raise TraceError(
                f"a {type(location).__name__} in the list is not a location: give paths and "
                f"addresses"
            )
        for file in files_of(location):
            if (file.path, file.root) in files:
                raise TraceError(f"{file.name} is in the list twice: name it once")
            files[file.path, file.root] = file
    if not files:
        raise TraceError("the list of locations is empty: name at least one file")
    return list(files.values())


def _files_of_glob(glob: StoredFile) -> list[StoredFile]:
    """Return the files that match, and those of folders that match."""
    first = _GLOB.search(glob.path)
    folder = glob.path[: first.start() if first else None].rpartition("/")[0]
    after = len(glob.path) - len(folder)
    base = StoredFile(glob.name[:-after], folder or "/", glob.root)
    pattern = glob.path[len(folder) + 1 :]
    files: dict[str, StoredFile] = {}  # `**` matches a folder and its files
    for info in base.infos(recursive="/" in pattern or "**" in pattern):
        below = info.path[len(folder) :].lstrip("/")
        if not _matches(below.split("/"), pattern.split("/")) or _is_hidden(below, pattern):
            continue
        match = StoredFile(base.below(info.path) if base.name else below, info.path, glob.root)
        matching = [match] if info.is_file else _listed(match)[0]
        files |= {file.path: file for file in matching}
    if not files:
        raise TraceError(
            f"nothing matches {glob.name}: check the pattern, and what is in the folder"
        )
    return sorted(files.values(), key=lambda file: file.path.split("/"))


def _matches(path: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether the parts of a path match those of a glob, in which `**` is any folders."""
    if not (path and pattern):
        return not (path or pattern)
    first, *rest = pattern
    if first == "**":
        return not rest or any(_matches(path[start:], rest) for start in range(len(path)))
    most = len(path) if "**" in first else 1
    return any(
        fnmatchcase("/".join(path[:count]), first) and _matches(path[count:], rest)
        for count in range(1, most + 1)
    )


def _is_hidden(path: str, spelled: str = "") -> bool:
    """Return whether a part of a path is hidden, and not spelled out in a pattern."""
    return any(
        part[:1] in (".", "_") and part not in spelled.split("/") for part in path.split("/")
    )


def _files_of_folder(folder: StoredFile) -> list[StoredFile]:
    """Return the files of a folder; the error names what it holds instead."""
    files, other_files, folders = _listed(folder)
    if files:
        return files
    if folder.root is not None and not (other_files or folders):
        raise TraceError(f"{folder.name} does not exist, or is empty: check the address")
    remedy = ": name a file of traces"
    if other_files:
        remedy = (
            f": it holds {amount(len(other_files), 'file')} of other kinds, such as "
            f"{other_files[0]}; name a file of traces, or write them as Parquet"
        )
    elif folders:
        remedy = (
            f", but with folders such as {folders[0]}: give a glob, '{folder.name}/**/*{SUFFIX}'"
        )
    raise TraceError(f"{folder.name} is a folder without {SUFFIX} files{remedy}")


def _listed(folder: StoredFile) -> tuple[list[StoredFile], list[str], list[str]]:
    """Return a folder's Parquet files, and the names of other files and folders in it."""
    files: list[StoredFile] = []
    other_files: list[str] = []
    folders: set[str] = set()
    # Object stores list all in one request; here other folders may hold many files.
    is_remote = folder.root is not None
    waiting = [folder]
    while waiting:
        for info in waiting.pop().infos(recursive=is_remote):
            name = folder.below(info.path)
            inside = name[len(folder.name.rstrip("/")) + 1 :]
            below = inside.split("/")
            if _is_hidden(inside):
                continue
            if not all(map(_PARTITION.fullmatch, below[:-1] if info.is_file else below)):
                folders.add(below[0])
            elif not info.is_file:
                if not is_remote:
                    waiting.append(StoredFile(name, info.path, None))
            elif below[-1].lower().endswith(SUFFIX):
                files.append(StoredFile(name, info.path, folder.root))
            else:
                other_files.append(below[-1])
    files.sort(key=lambda file: file.path.split("/"))
    return files, sorted(other_files), sorted(folders)
