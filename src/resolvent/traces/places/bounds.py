"""Between which values the episodes of pieces lie → which of them may share an episode."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from resolvent.traces.places.blocks import Bounds, Footer, StoredFiles
from resolvent.traces.places.keys import Episode


class _Beyond(NamedTuple):
    """A value before all others, or after them."""

    before: bool

    def __lt__(self, other: Any) -> bool:
        return self.before and self != other

    def __gt__(self, other: Any) -> bool:
        return not self.before and self != other


def bounds_by_place(
    stored: StoredFiles, number: int, ends: Sequence[Footer], episode: Sequence[str]
) -> Bounds | None:
    """Return what is known of the episodes of a file that cannot be read: what its path says."""
    in_files = {name for end in ends for name in end.schema.names}
    told = {
        name: value
        for name, value in stored.constants(number).items()
        if name not in in_files and value is not None
    }
    if not told.keys() & set(episode):
        return None
    least, most = (tuple(told.get(name, _Beyond(end)) for name in episode) for end in (True, False))
    return least, most


def are_apart(one: Bounds | None, other: Bounds | None) -> bool:
    """Whether two blocks certainly share no episode."""
    if one is None or other is None:
        return False
    try:
        return one[1] < other[0] or other[1] < one[0]
    except TypeError:
        return False


def bounds_around(bounds: Sequence[Bounds | None]) -> Bounds | None:
    """Return the bounds of all blocks of a piece together."""
    known = [one for one in bounds if one is not None]
    if len(known) < len(bounds):
        return None
    try:
        return min(one[0] for one in known), max(one[1] for one in known)
    except TypeError:
        return None


def touching(one: Bounds | None, other: Bounds | None) -> Episode | None:
    """Return the only episode that two pieces may share, where one ends and the other begins.

    >>> touching(((1,), (4,)), ((4,), (6,))), touching(((4,), (6,)), ((1,), (4,)))
    ((4,), (4,))
    """
    if one is None or other is None:
        return None
    episode = one[1] if one[1] == other[0] else one[0]
    return episode if all(type(value) in (int, str) for value in episode) else None


def are_in_order(bounds: Sequence[Bounds | None]) -> bool:
    """Whether pieces certainly share no episode but, at most, one with a neighbour.

    >>> are_in_order([((1,), (4,)), ((4,), (6,)), ((9,), (9,))])
    True
    >>> are_in_order([((1,), (4,)), ((9,), (9,)), ((4,), (6,))])
    False
    """
    if len(bounds) < 2:
        return True
    known = [(one, number) for number, one in enumerate(bounds) if one is not None]
    try:
        ordered = sorted(known)
    except TypeError:
        return False
    return len(known) == len(bounds) and all(
        one[1] < other[0] or (one[1] == other[0] and abs(first - second) == 1)
        for (one, first), (other, second) in pairwise(ordered)
    )
