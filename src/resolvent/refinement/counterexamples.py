"""What traces show of two machines → the few traces to learn from next."""

import numpy as np
from numpy.typing import NDArray

from resolvent.refinement.sightings import PairSightings, Rows, Sightings


def counterexamples(seen: PairSightings, chosen: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return the numbers of traces that the machines cannot explain, rising, at most about `most`.

    For a conflict both traces are taken that show it, for a missing move the
    one that needs it. Short traces come first, and those of different states:
    the next conflict of a state counts only when every state had its first.
    Traces that were learned from already are left out; there is always one
    that was not, since the machines explain those.
    """
    wanted = [
        *_conflicting(seen.transition),
        *_conflicting(seen.reward),
        *_missing(seen.transition),
        *_missing(seen.reward),
    ]
    taken = set(chosen.tolist())
    found: set[int] = set()
    for _, _, traces in sorted(wanted):
        if len(found) >= most:
            break
        found.update(trace for trace in traces if trace not in taken)
    return np.array(sorted(found), np.int64)


Wanted = tuple[int, tuple[int, int], tuple[int, ...]]
"""How many of the same state come before it, length and key of its trace, the traces."""


def _conflicting(sightings: Sightings) -> list[Wanted]:
    rows = sightings.conflicts
    if len(rows) == 0:
        return []
    new = np.append(
        True,
        (rows["state"][1:] != rows["state"][:-1]) | (rows["question"][1:] != rows["question"][:-1]),
    )
    start = np.flatnonzero(new)
    # The first two answers of each; a third is met again once these are settled.
    pairs = zip(rows["trace"][start], rows["trace"][start + 1], strict=True)
    return _ranked(rows[start + 1], list(pairs))


def _missing(sightings: Sightings) -> list[Wanted]:
    rows = sightings.missing
    return _ranked(rows, [(trace,) for trace in rows["trace"]])


def _ranked(rows: Rows, traces: list[tuple[np.int64, ...]]) -> list[Wanted]:
    order = np.lexsort((rows["key"], rows["length"], rows["state"]))
    met: dict[int, int] = {}
    wanted = []
    for at in order.tolist():
        state = int(rows["state"][at])
        rank = met[state] = met.get(state, -1) + 1
        numbers = tuple(int(trace) for trace in traces[at])
        wanted.append((rank, (int(rows["length"][at]), int(rows["key"][at])), numbers))
    return wanted
