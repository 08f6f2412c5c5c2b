"""Many values that are rarely all looked at → a sequence that makes each when it is asked for."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, overload

V = TypeVar("V")


class OnDemand(Sequence[V], Generic[V]):
    """A sequence of which only the length is known beforehand.

    >>> squares = OnDemand(5, lambda number: number * number)
    >>> squares[-1], squares[1:3], list(squares), squares == (0, 1, 4, 9, 16)
    (16, (1, 4), [0, 1, 4, 9, 16], True)
    """

    def __init__(self, length: int, make: Callable[[int], V]) -> None:
        self._numbers, self._make = range(length), make

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> V: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[V, ...]: ...
    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return tuple(map(self._make, self._numbers[place]))
        return self._make(self._numbers[place])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OnDemand | tuple) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} × {type(self[0]).__name__}>" if self else "<nothing>"
