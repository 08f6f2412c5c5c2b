"""Many values that are rarely all looked at → a sequence that makes each when it is asked for."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar, overload

V = TypeVar("V")


class OnDemand(Sequence[V], ABC, Generic[V]):
    """A sequence of which only the length is known beforehand; `_made` makes its values.

    >>> class Squares(OnDemand[int]):
    ...     def _made(self, number):
    ...         return number * number
    >>> squares = Squares(5)
    >>> squares[-1], squares[1:3], list(squares), squares == (0, 1, 4, 9, 16)
    (16, (1, 4), [0, 1, 4, 9, 16], True)
    """

    def __init__(self, length: int) -> None:
        self._numbers = range(length)

    @abstractmethod
    def _made(self, number: int) -> V:
        """Return the value at a place, counted from 0."""

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> V: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[V, ...]: ...
    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return tuple(map(self._made, self._numbers[place]))
        return self._made(self._numbers[place])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OnDemand | tuple) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} × {type(self[0]).__name__}>" if self else "<nothing>"
