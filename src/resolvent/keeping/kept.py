"""Work whose results are kept: done once for every key, whoever asks and however often."""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from resolvent.keeping.store import Store

Given = TypeVar("Given", contravariant=True)
Made = TypeVar("Made")


class Keepable(Protocol[Given, Made]):
    """Work on a piece that says what its result depends on, and knows it as bytes."""

    def __call__(self, piece: Given) -> Made:
        """Make something of a piece."""

    def key(self, piece: Given) -> str | None:
        """Return a digest of all that the result depends on; None if it cannot be kept."""

    def pack(self, made: Made) -> bytes:
        """Return a result as bytes."""

    def unpack(self, content: bytes) -> Made:
        """Return the result that bytes stand for; `ValueError` if they stand for none."""


@dataclass(frozen=True)
class Kept(Generic[Given, Made]):
    """Work that looks into a store before it begins, and puts there what it makes.

    It is itself a function of a piece, and goes wherever the work may go: whoever does the work
    keeps its result, so that nothing is lost with whoever asked for it.
    """

    work: Keepable[Given, Made]
    store: Store

    def __call__(self, piece: Given) -> Made:
        """Return what was kept of a piece, or else make it and keep it."""
        key = self.work.key(piece)
        if key is None:
            return self.work(piece)
        content = self.store.get(key)
        if content is not None:
            try:
                return self.work.unpack(content)
            except ValueError:  # whole, and yet not what this version writes
                self.store.distrust(key)
        made = self.work(piece)
        self.store.put(key, self.work.pack(made))
        return made
