"""How the rows of a piece of files stand, as plain data: found once, it holds for good."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Arrangement(NamedTuple):
    """What need not be looked at again when a piece is read once more, for its files are sealed.

    `front` is how many rows come first that belong to an episode which began in a piece before;
    `in_order` says that the others stand in order, so that what orders them need not be read.
    """

    front: int
    in_order: bool


class Arrangements(Mapping[int, Arrangement]):
    """How the rows of pieces stand, by the pieces' numbers.

    What was found is kept as it comes, and sent as arrays: a million of them take little to send,
    and nothing to load.

    >>> import pickle
    >>> found = Arrangements()
    >>> found[7] = Arrangement(3, in_order=True)
    >>> sent = pickle.loads(pickle.dumps(found))
    >>> sent[7], sent.get(6), list(sent)
    (Arrangement(front=3, in_order=True), None, [7])
    """

    def __init__(self) -> None:
        self._found: dict[int, Arrangement] = {}
        self._number: NDArray[np.int64] = np.empty(0, np.int64)
        self._front: NDArray[np.int64] = np.empty(0, np.int64)
        self._in_order: NDArray[np.bool_] = np.empty(0, bool)

    def __setitem__(self, number: int, arrangement: Arrangement) -> None:
        self._found[number] = arrangement

    def __getitem__(self, number: int) -> Arrangement:
        if number in self._found:
            return self._found[number]
        at = int(np.searchsorted(self._number, number))
        if at == len(self._number) or self._number[at] != number:
            raise KeyError(number)
        return Arrangement(int(self._front[at]), bool(self._in_order[at]))

    def __iter__(self) -> Iterator[int]:
        sent = (number for number in self._number.tolist() if number not in self._found)
        return chain(sent, list(self._found))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getstate__(self) -> dict[str, Any]:
        if not self._found:
            return self.__dict__
        known = sorted(self.items())
        return {
            "_found": {},
            "_number": np.array([number for number, _ in known], np.int64),
            "_front": np.array([one.front for _, one in known], np.int64),
            "_in_order": np.array([one.in_order for _, one in known], bool),
        }
