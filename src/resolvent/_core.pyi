"""Resolvent's compiled core: prefix trees, state merging and replay over flat arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
Rows = NDArray[np.int64]
Pairs = list[tuple[int, int]]

def learn(
    alpha: Ids,
    output: Ids,
    beta: Ids,
    offsets: Rows,
    *,
    order: str,
    time_limit: float = 0.0,
    progress: Callable[[int, int, int, int], object] | None = None,
) -> dict[str, Any]: ...
def find_contradiction(
    alpha: Ids, output: Ids, beta: Ids, offsets: Rows
) -> tuple[int, int] | None: ...
def tally_outputs(alpha: Ids, output: Ids, alphas: int) -> tuple[Ids, Rows, NDArray[np.uint8]]: ...
def replay(transitions: Ids, labels: int, beta: Ids, offsets: Rows) -> Ids: ...

class SteppedFolding:
    def __init__(self, alpha: Ids, output: Ids, beta: Ids, offsets: Rows) -> None: ...
    def promote(self, state: int) -> None: ...
    def try_fold(self, red: int, blue: int) -> int | None: ...
    def undo(self) -> None: ...
    def snapshot(self) -> list[tuple[int, Pairs, Pairs]]: ...
