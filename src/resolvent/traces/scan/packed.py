"""Files and row groups as columns: a million of them take little to send, and nothing to load.

What they hold is what tuples of them would; each is made anew when it is asked for. Arrays are
shared by all processes of a node of Ray; objects would be made again by each task.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import overload

import numpy as np
from numpy.typing import NDArray

from resolvent.by_value import ByValue
from resolvent.traces.scan.listing import StoredFile
from resolvent.traces.scan.row_groups import Block, Seal

_ENCODING = ("utf-8", "surrogateescape")  # a path may hold any bytes


@dataclass(frozen=True, eq=False)
class Texts(ByValue):
    """Texts that begin alike, one after the other in one array.

    >>> texts = Texts.of(["day=1/a", "day=1/b", "day=22"])
    >>> texts.prefix, len(texts), texts[1], texts[2]
    ('day=', 3, 'day=1/b', 'day=22')
    """

    prefix: str
    content: NDArray[np.uint8]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Sequence[str]) -> "Texts":
        """Put texts together."""
        # What the first and the last in order have in common, all between them have.
        least, most = min(texts, default=""), max(texts, default="")
        alike = takewhile(lambda pair: pair[0] == pair[1], zip(least, most, strict=False))
        prefix = "".join(letter for letter, _ in alike)
        rest = [text[len(prefix) :].encode(*_ENCODING) for text in texts]
        ends = np.cumsum([0, *map(len, rest)], dtype=np.int64)
        return cls(prefix, np.frombuffer(b"".join(rest), np.uint8), ends)

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, number: int) -> str:
        first, after = self.ends[number : number + 2]
        return self.prefix + self.content[first:after].tobytes().decode(*_ENCODING)

    def starting(self, prefix: str) -> "Texts":
        """Return the same texts with another beginning."""
        return Texts(prefix, self.content, self.ends)

    def ends_like(self, other: "Texts") -> bool:
        """Whether others differ at most in how all of them begin."""
        return np.array_equal(self.ends, other.ends) and np.array_equal(self.content, other.content)


@dataclass(frozen=True, eq=False)
class PackedFiles(ByValue, Sequence[StoredFile]):
    """Files, as a tuple of them would be.

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
        """Put files together; most names end as their paths do, which is kept once."""
        names, paths = (Texts.of([getattr(one, of) for one in files]) for of in ("name", "path"))
        if names.ends_like(paths):
            paths = names.starting(paths.prefix)
        roots = tuple(dict.fromkeys(one.root for one in files))
        place = {root: number for number, root in enumerate(roots)}
        root_of = np.array([place[one.root] for one in files] if len(roots) > 1 else [], np.int32)
        return cls(names, paths, roots, root_of)

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, number: int) -> StoredFile: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[StoredFile, ...]: ...
    def __getitem__(self, number: int | slice) -> StoredFile | tuple[StoredFile, ...]:
        if isinstance(number, slice):
            return tuple(self[one] for one in range(*number.indices(len(self))))
        number = range(len(self))[number]
        root = self.roots[int(self.root_of[number]) if len(self.root_of) else 0]
        return StoredFile(self.names[number], self.paths[number], root)


@dataclass(frozen=True, eq=False)
class PackedSeals(ByValue, Sequence[Seal]):
    """Seals, as a tuple of them would be.

    >>> seals = [Seal(7, "tag"), Seal(8, None), Seal(9, 12)]
    >>> list(PackedSeals.of(seals)) == seals
    True
    """

    sizes: NDArray[np.int64]
    changed: NDArray[np.int64] | Texts

    @classmethod
    def of(cls, seals: Sequence[Seal]) -> "PackedSeals":
        """Put seals together: times of change as numbers, and ETags as texts."""
        sizes = np.array([seal.size for seal in seals], np.int64)
        if all(isinstance(seal.changed, int) for seal in seals):
            return cls(sizes, np.array([seal.changed for seal in seals], np.int64))
        return cls(sizes, Texts.of([_as_text(seal.changed) for seal in seals]))

    def __len__(self) -> int:
        return len(self.sizes)

    @overload
    def __getitem__(self, number: int) -> Seal: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[Seal, ...]: ...
    def __getitem__(self, number: int | slice) -> Seal | tuple[Seal, ...]:
        if isinstance(number, slice):
            return tuple(self[one] for one in range(*number.indices(len(self))))
        number = range(len(self))[number]
        changed = self.changed[number]
        told = _of_text(changed) if isinstance(changed, str) else int(changed)
        return Seal(int(self.sizes[number]), told)


def _as_text(changed: str | int | None) -> str:
    kind = {str: "t", int: "n", type(None): "-"}[type(changed)]
    return kind if changed is None else f"{kind}{changed}"


def _of_text(text: str) -> str | int | None:
    kind, rest = text[0], text[1:]
    return rest if kind == "t" else int(rest) if kind == "n" else None


@dataclass(frozen=True, eq=False)
class PackedBlocks(ByValue, Sequence[Block]):
    """Row groups, as a tuple of them would be.

    >>> blocks = PackedBlocks.of([Block(0, 0, 0, 5), Block(0, 1, 5, 7), Block(1, 0, 0, 2)])
    >>> blocks[1:], blocks.rows
    ((Block(file=0, group=1, first=5, rows=7), Block(file=1, group=0, first=0, rows=2)), 14)
    """

    numbers: NDArray[np.int64]

    @classmethod
    def of(cls, blocks: Iterable[Block]) -> "PackedBlocks":
        """Put row groups together."""
        return cls(np.array([*blocks], np.int64).reshape(-1, len(Block._fields)))

    @property
    def rows(self) -> int:
        """How many rows they have together."""
        return int(self.numbers[:, Block._fields.index("rows")].sum())

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, number: int) -> Block: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[Block, ...]: ...
    def __getitem__(self, number: int | slice) -> Block | tuple[Block, ...]:
        found = self.numbers[number].tolist()
        return tuple(map(Block._make, found)) if isinstance(number, slice) else Block._make(found)
