"""What all workers can do, however they do it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")

Report = Callable[[int], None]
"""Called with how many pieces are done; what it raises stops the work."""


class Workers(Protocol):
    """Something that goes through pieces of work, several at a time.

    A function given to it has to be one that can be pickled, such as a frozen dataclass with
    `__call__`, and has to give the same for the same piece: it may be tried again elsewhere.
    `called` names the work for people who watch, such as "replaying".
    """

    @property
    def name(self) -> str:
        """How a user asks for it: "threads", "processes", "ray"."""

    def each(
        self,
        work: Callable[[Given], Made],
        pieces: Sequence[Given],
        *,
        called: str,
        report: Report | None = None,
    ) -> Iterator[Made]:
        """Return what is made of every piece, in the order of the pieces."""

    def together(
        self,
        work: Callable[[Given], Made],
        pieces: Sequence[Given],
        combine: Callable[[Made, Made], Made],
        *,
        called: str,
        report: Report | None = None,
    ) -> Made:
        """Return what is made of all pieces, combined in their order; there must be one at least.

        `combine` has to be associative: neighbours are combined where they are, near the data,
        and in any grouping.
        """

    def first(
        self,
        work: Callable[[Given], Made],
        pieces: Sequence[Given],
        enough: Callable[[Made], bool],
        *,
        called: str,
    ) -> list[Made | None]:
        """Work on all pieces side by side until one that comes in is enough, and stop the others.

        Returns what was made of each piece by then, None for those that were stopped. Which they
        are depends on chance: a caller has to return the same whatever they are.
        """

    def close(self) -> None:
        """Let go of what was begun for the work; more work begins it again."""
