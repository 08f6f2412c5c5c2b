"""Sequences of files, fingerprints and row groups as arrays, small to send and quick to load.

Elements are created on access. Ray shares arrays among all processes of a node; objects would be
created again by each task.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import overload

import numpy as np
from numpy.typing import NDArray

from resolvent._util.records import ByValue
from resolvent.traces.scan.listing import StoredFile
from resolvent.traces.scan.row_groups import Fingerprint, RowGroup

_ENCODING = ("utf-8", "surrogateescape")  # a path may hold any bytes


@dataclass(frozen=True, eq=False)
class Texts(ByValue):
    """Texts with a common prefix, concatenated in one array.

    >>> texts = Texts.of(["day=1/a", "day=1/b", "day=22"])
    >>> texts.prefix, len(texts), texts[1], texts[2]
    ('day=', 3, 'day=1/b', 'day=22')
    """

    prefix: str
    content: NDArray[np.uint8]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Sequence[str]) -> "Texts":
        """Pack texts."""
        # The common prefix of the least and the greatest text is that of all.
        least, most = min(texts, default=""), max(texts, default="")
        common = takewhile(lambda pair: pair[0] == pair[1], zip(least, most, strict=False))
        prefix = "".join(letter for letter, _ in common)
        rest = [text[len(prefix) :].encode(*_ENCODING) for text in texts]
        ends = np.cumsum([0, *map(len, rest)], dtype=np.int64)
        return cls(prefix, np.frombuffer(b"".join(rest), np.uint8), ends)

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, number: int) -> str:
        first, after = self.ends[number : number + 2]
        return self.prefix + self.content[first:after].tobytes().decode(*_ENCODING)

    def starting(self, prefix: str) -> "Texts":
        """Return the same texts with another prefix."""
        return Texts(prefix, self.content, self.ends)

    def ends_like(self, other: "Texts") -> bool:
        """Whether other texts differ at most in their prefix."""
        return np.array_equal(self.ends, other.ends) and np.array_equal(self.content, other.content)


@dataclass(frozen=True, eq=False)
class PackedFiles(ByValue, Sequence[StoredFile]):
    """A sequence of files.

    >>> files = [StoredFile(f"logs/{n}", f"/data/logs/{n}") for n in "abc"]
    >>> packed = PackedFiles.of(files)
    >>> packed[2], list(packed) == files
    (StoredFile(name='logs/c', path='/data/logs/c', root=None), True)
    """

    names: Texts
    paths: Texts
    roots: tuple[str | None, ...]
    root_of: NDArray[np.int32]

    @classmethod
    def of(cls, files: Sequence[StoredFile]) -> "PackedFiles":
        """Pack files; most names end as their paths do, which is stored once."""
        names, paths = (Texts.of([getattr(file, of) for file in files]) for of in ("name", "path"))
        if names.ends_like(paths):
            paths = names.starting(paths.prefix)
        roots = tuple(dict.fromkeys(file.root for file in files))
        place = {root: number for number, root in enumerate(roots)}
        root_of = np.array([place[file.root] for file in files] if len(roots) > 1 else [], np.int32)
        return cls(names, paths, roots, root_of)

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, number: int) -> StoredFile: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[StoredFile, ...]: ...
    def __getitem__(self, number: int | slice) -> StoredFile | tuple[StoredFile, ...]:
        if isinstance(number, slice):
            return tuple(self[index] for index in range(*number.indices(len(self))))
        number = range(len(self))[number]
        root = self.roots[int(self.root_of[number]) if len(self.root_of) else 0]
        return StoredFile(self.names[number], self.paths[number], root)


@dataclass(frozen=True, eq=False)
class PackedFingerprints(ByValue, Sequence[Fingerprint]):
    """Fingerprints, as a tuple of them would be.

    >>> fingerprints = [Fingerprint(7, "tag"), Fingerprint(8, None), Fingerprint(9, 12)]
    >>> list(PackedFingerprints.of(fingerprints)) == fingerprints
    True
    """

    sizes: NDArray[np.int64]
    changed: NDArray[np.int64] | Texts

    @classmethod
    def of(cls, fingerprints: Sequence[Fingerprint]) -> "PackedFingerprints":
        """Pack fingerprints: times of change as numbers, and ETags as texts."""
        sizes = np.array([fingerprint.size for fingerprint in fingerprints], np.int64)
        if all(isinstance(fingerprint.changed, int) for fingerprint in fingerprints):
            return cls(
                sizes, np.array([fingerprint.changed for fingerprint in fingerprints], np.int64)
            )
        return cls(sizes, Texts.of([_as_text(fingerprint.changed) for fingerprint in fingerprints]))

    def __len__(self) -> int:
        return len(self.sizes)

    @overload
    def __getitem__(self, number: int) -> Fingerprint: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[Fingerprint, ...]: ...
    def __getitem__(self, number: int | slice) -> Fingerprint | tuple[Fingerprint, ...]:
        if isinstance(number, slice):
            return tuple(self[index] for index in range(*number.indices(len(self))))
        number = range(len(self))[number]
        changed = self.changed[number]
        decoded = _of_text(changed) if isinstance(changed, str) else int(changed)
        return Fingerprint(int(self.sizes[number]), decoded)


def _as_text(changed: str | int | None) -> str:
    kind = {str: "t", int: "n", type(None): "-"}[type(changed)]
    return kind if changed is None else f"{kind}{changed}"


def _of_text(text: str) -> str | int | None:
    kind, rest = text[0], text[1:]
    return rest if kind == "t" else int(rest) if kind == "n" else None


@dataclass(frozen=True, eq=False)
class PackedRowGroups(ByValue, Sequence[RowGroup]):
    """A sequence of row groups.

    >>> row_groups = PackedRowGroups.of([RowGroup(0, 0, 0, 5), RowGroup(0, 1, 5, 7)])
    >>> row_groups[1:]
    (RowGroup(file=0, group=1, first=5, rows=7),)
    """

    numbers: NDArray[np.int64]

    @classmethod
    def of(cls, row_groups: Iterable[RowGroup]) -> "PackedRowGroups":
        """Pack row groups."""
        return cls(np.array([*row_groups], np.int64).reshape(-1, len(RowGroup._fields)))

    @property
    def rows(self) -> int:
        """Number of rows of all row groups."""
        return int(self.numbers[:, RowGroup._fields.index("rows")].sum())

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, number: int) -> RowGroup: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[RowGroup, ...]: ...
    def __getitem__(self, number: int | slice) -> RowGroup | tuple[RowGroup, ...]:
        numbers = self.numbers[number].tolist()
        return (
            tuple(map(RowGroup._make, numbers))
            if isinstance(number, slice)
            else RowGroup._make(numbers)
        )
