"""What traces show of two machines → the few traces to learn from next."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.replay import Replay, Rows


def counterexamples(shown: Replay, chosen: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return the numbers of traces that the machines cannot explain, rising: `most` or one more.

    For a conflict both traces are taken that show it, for a missing move the
    one that needs it. Short traces come first, and those of different states:
    the next conflict of a state counts only when every state had its first.
    Traces that were learned from already (`chosen`) are left out. Others are
    always among them, since the machines explain those.
    """
    wanted = sorted(
        (*rank, machine, *traces)
        for machine, one in enumerate(shown.machines.values())
        for kind in (_conflicts(one.conflicts), _missing(one.missing))
        for rank, traces in kind
    )
    known = set(chosen.tolist())
    found: set[int] = set()
    for *_, first, second in wanted:
        if len(found) >= most:
            break
        found |= {first, second} - known
    return np.array(sorted(found), np.int64)


Wanted = tuple[tuple[Any, ...], tuple[int, int]]
"""Where it stands among the others, and the traces that show it."""


def _conflicts(rows: Rows) -> Iterator[Wanted]:
    """Of the answers in conflict, look at the first two of each; a third is met again later."""
    same = (rows["state"][1:] == rows["state"][:-1]) & (
        rows["question"][1:] == rows["question"][:-1]
    )
    start = np.flatnonzero(np.append(True, ~same)[: len(rows)])
    return _ranked(rows[start + 1], rows["trace"][start], "question")


def _missing(rows: Rows) -> Iterator[Wanted]:
    return _ranked(rows, rows["trace"], "label")


def _ranked(rows: Rows, others: NDArray[np.int64], symbol: str) -> Iterator[Wanted]:
    order = np.lexsort((rows[symbol], rows["key"], rows["length"], rows["state"]))
    met: dict[int, int] = {}
    names = ("state", "length", "key", symbol, "trace")
    columns = (rows[name][order].tolist() for name in names)
    for state, length, key, what, trace, other in zip(
        *columns, others[order].tolist(), strict=True
    ):
        place = met[state] = met.get(state, -1) + 1
        yield (place, length, key, state, what), (trace, other)
