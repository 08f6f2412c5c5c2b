"""Workers that keep what is made of pieces of files, and find it when they are asked again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any, TypeVar

from resolvent.keeping.kept import Keepable, Kept
from resolvent.keeping.packing import Packing, digest_of
from resolvent.keeping.store import Store
from resolvent.traces.shards import Shards, seal_of
from resolvent.workers import Workers
from resolvent.workers.working import Report

Given = TypeVar("Given")
Made = TypeVar("Made")

_FORMAT = 2
"""To be raised whenever the same work gives something else, or the same thing means another."""


@dataclass(frozen=True)
class Results:
    """What some kind of work makes, and of which kinds of records that consists."""

    made: type
    kinds: tuple[type, ...] = ()


@dataclass(frozen=True)
class KeepingWorkers:
    """Workers that keep results: each is made once for all that it depends on.

    That is the work with all its fields, and the piece, with the files that it is read from as
    these were when they were opened. `results` says of which work results are kept; other work
    is done as it always is.
    """

    workers: Workers
    store: Store
    results: Mapping[type, Results]

    @property
    def name(self) -> str:
        """How a user asks for those who do the work."""
        return self.workers.name

    def each(
        self,
        work: Callable[[Given], Made],
        pieces: Sequence[Given],
        *,
        called: str,
        report: Report | None = None,
    ) -> Iterator[Made]:
        """Return what is made of every piece, in the order of the pieces."""
        return self.workers.each(self._kept(work), pieces, called=called, report=report)

    def together(
        self,
        work: Callable[[Given], Made],
        pieces: Sequence[Given],
        combine: Callable[[Made, Made], Made],
        *,
        called: str,
        report: Report | None = None,
    ) -> Made:
        """Return what is made of all pieces, combined in their order."""
        kept = self._kept(work)
        return self.workers.together(kept, pieces, combine, called=called, report=report)

    def first(
        self,
        work: Callable[[Given], Made],
        pieces: Sequence[Given],
        enough: Callable[[Made], bool],
        *,
        called: str,
    ) -> list[Made | None]:
        """Work on all pieces side by side until one is enough; nothing of that is kept."""
        return self.workers.first(work, pieces, enough, called=called)

    def close(self) -> None:
        """Let go of what was begun for the work; more work begins it again."""
        self.workers.close()

    def _kept(self, work: Callable[[Given], Made]) -> Callable[[Given], Made]:
        results = self.results.get(type(work))
        if results is None:
            return work
        shards, rest = _taken_apart(work)
        try:
            depends = digest_of(_FORMAT, version("resolvent"), rest)
        except TypeError:  # shards that are in memory are among the rest
            return work
        if len(shards) != 1:
            return work
        return Kept(_OfFiles(work, shards[0], depends, results), self.store)


@dataclass(frozen=True)
class _OfFiles(Keepable[Given, Made]):
    """Work on pieces of files: a piece is its number, or a tuple that begins with it."""

    work: Callable[[Given], Made]
    shards: Shards
    depends: str
    results: Results

    def __call__(self, piece: Given) -> Made:
        """Make something of a piece."""
        return self.work(piece)

    def key(self, piece: Given) -> str | None:
        """Return a digest of all that the result depends on; None for traces in memory."""
        seal = seal_of(self.shards, piece[0] if isinstance(piece, tuple) else piece)  # type: ignore[arg-type]
        return None if seal is None else digest_of(self.depends, seal, piece)

    def pack(self, made: Made) -> bytes:
        """Return a result as bytes."""
        return self._packing.pack(made)

    def unpack(self, content: bytes) -> Made:
        """Return the result that bytes stand for; `ValueError` if they stand for none."""
        made: Made = self._packing.unpack(content)
        if type(made) is not self.results.made:
            raise ValueError(f"a {type(made).__name__} instead of a {self.results.made.__name__}")
        return made

    @cached_property
    def _packing(self) -> Packing:
        return Packing(self.results.kinds)


def _taken_apart(work: Any) -> tuple[list[Shards], Any]:
    """Return the shards among the fields of a dataclass, and plain data of all the others."""
    shards: list[Shards] = []

    def rest(value: Any) -> Any:
        if hasattr(value, "seal"):
            shards.append(value)
            return None
        if is_dataclass(value) and not isinstance(value, type):
            of_fields = [rest(getattr(value, field.name)) for field in fields(value)]
            return [f"{type(value).__module__}.{type(value).__qualname__}", of_fields]
        return value

    return shards, rest(work)
