"""Workers that end in an order of the test's choosing: a stand-in for all that chance may do."""

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np


class InAnyOrder:
    """Goes through pieces one by one, in an order drawn by a seed."""

    name = "any order"

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.stopped = 0

    def each(
        self, work: Callable[[Any], Any], pieces: Sequence[Any], *, called: str, report: Any = None
    ) -> Iterator[Any]:
        """Return what is made of every piece."""
        made = {at: work(pieces[at]) for at in self.random.permutation(len(pieces)).tolist()}
        for at in range(len(pieces)):
            yield made[at]
            if report is not None:
                report(at + 1)

    def together(
        self,
        work: Callable[[Any], Any],
        pieces: Sequence[Any],
        combine: Callable[[Any, Any], Any],
        *,
        called: str,
        report: Any = None,
    ) -> Any:
        """Return what is made of all pieces."""
        return reduce(combine, self.each(work, pieces, called=called, report=report))

    def first(
        self,
        work: Callable[[Any], Any],
        pieces: Sequence[Any],
        enough: Callable[[Any], bool],
        *,
        called: str,
    ) -> list[Any]:
        """Work on pieces until one is enough."""
        made: list[Any] = [None] * len(pieces)
        for done, at in enumerate(self.random.permutation(len(pieces)).tolist(), 1):
            made[at] = work(pieces[at])
            if enough(made[at]):
                self.stopped += len(pieces) - done
                break
        return made

    def close(self) -> None:
        """Do nothing."""
