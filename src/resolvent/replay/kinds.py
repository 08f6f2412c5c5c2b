"""Columns of many rows → the different rows there are, how often each occurs, and where first."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resolvent.traces import Codes
from resolvent.traces.vocabulary import distinct_pairs

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Kinds:
    """The different rows of some columns, in the order in which they first occur.

    `trace` and `step` say where that is. A code of −1 stands for "not known". There are as
    many kinds as a world has, however often each occurs; and what two pieces show adds up.

    >>> column = {"seen": np.int32([4, 4, 2]), "done": np.int32([0, 0, 0])}
    >>> once = Kinds.of(column, np.array([0, 0, 1]), np.array([0, 1, 0]))
    >>> again = Kinds.of(column, np.array([2, 2, 3]), np.array([0, 1, 0]))
    >>> both = again + once
    >>> both["seen"].tolist(), both.count.tolist(), both.trace.tolist()
    ([4, 2], [4, 2], [0, 1])
    """

    columns: Mapping[str, Codes]
    count: Numbers
    trace: Numbers
    step: Numbers

    @classmethod
    def of(cls, columns: Mapping[str, Codes], trace: Numbers, step: Numbers) -> "Kinds":
        """Count the different rows of columns, which are in the order of traces and steps."""
        return cls(columns, np.ones(len(trace), np.int64), trace, step)._distinct()

    def __len__(self) -> int:
        return len(self.count)

    def __getitem__(self, name: str) -> Codes:
        return self.columns[name]

    def __add__(self, other: "Kinds") -> "Kinds":
        """Put two together; of equal rows the earlier place stays."""
        trace = np.concatenate([self.trace, other.trace])
        step = np.concatenate([self.step, other.step])
        order = np.lexsort((step, trace))
        columns = {
            name: np.concatenate([mine, other.columns[name]])[order]
            for name, mine in self.columns.items()
        }
        count = np.concatenate([self.count, other.count])[order]
        return Kinds(columns, count, trace[order], step[order])._distinct()

    def _distinct(self) -> "Kinds":
        place, many = np.zeros(len(self.count), np.int32), 1
        for codes in self.columns.values():
            size = int(codes.max(initial=-1)) + 2  # one more, for "not known"
            kept, place = distinct_pairs(place, codes + np.int32(1), many, size)
            many = len(kept)
        first = np.empty(many if len(place) else 0, np.int64)
        first[place[::-1]] = np.arange(len(place))[::-1]  # the last one written stays
        count = np.zeros(len(first), np.int64)
        np.add.at(count, place, self.count)
        order = np.argsort(first)
        rows = first[order]
        return Kinds(
            {name: codes[rows] for name, codes in self.columns.items()},
            count[order],
            self.trace[rows],
            self.step[rows],
        )
