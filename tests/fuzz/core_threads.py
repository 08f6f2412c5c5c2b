"""The compiled core called from several threads at once, on columns that they share.

Run by `make sanitize-threads`, under ThreadSanitizer. Each call is made alone first; made again
by four threads at the same time it must give the same, and nothing may race.
"""

import argparse
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import numpy as np

from fuzz import core_calls
from resolvent import _core

THREADS = 4


def plain(value: Any) -> Any:
    """Return what a call gave as values that can be compared."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tobytes()
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return repr(value) if isinstance(value, float) else value


def outcome(call: Callable[[Random], object], seed: int) -> Any:
    """Return what a call gives, or how it is refused."""
    try:
        return plain(call(Random(seed)))
    except core_calls.REFUSED as error:
        return type(error).__name__


def shared(draw: Random) -> list[Callable[[], Any]]:
    """Return calls that read the same tree and the same columns of traces."""
    given = core_calls.samples(draw)
    tree = _core.build_history_tree(given.beta, given.offsets)
    held, sizes, traces = core_calls.columns_of(Random(draw.randrange(8) * 3 + 1))
    table = np.zeros(sizes["labels"], np.int32)
    rank = np.arange(traces, dtype=np.int32)

    def learned() -> Any:
        return plain(_core.learn(tree, given.alpha, given.output, order="edsm"))

    def replayed() -> Any:
        return plain(
            held.replay(
                [(table, _core.NEXT_OBSERVATION, False)],
                rank=rank, first=1, lag=0, outputs=True, augmented_states=False, unknown_states=False,
                earliest=True, states=True, threads=2,
            )
        )  # fmt: skip

    def walked() -> Any:
        return plain(_core.walk_states(given.table, given.labels, given.beta, given.offsets))

    return [learned, replayed, walked]


def told(call: Callable[[], Any]) -> Any:
    """Return what a call gives, or how it is refused."""
    try:
        return call()
    except core_calls.REFUSED as error:
        return type(error).__name__


def run(inputs: int, seed: int = 0) -> int:
    """Make so many calls of each kind in threads; return how many."""
    made = 0
    with ThreadPoolExecutor(THREADS) as threads:
        for number in range(seed, seed + inputs):
            for call in core_calls.CALLS:
                alone = outcome(call, number)
                at_once = list(threads.map(outcome, [call] * THREADS, [number] * THREADS))
                assert at_once == [alone] * THREADS, (call.__name__, number)
                made += THREADS
            try:
                calls = shared(Random(number))
            except core_calls.REFUSED:
                continue
            single = [told(call) for call in calls]
            assert list(threads.map(told, calls * 2)) == single * 2, number
            made += 2 * len(calls)
    return made


def main() -> None:
    """Make calls, and say how many."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"{run(options.inputs, options.seed):,} calls in {THREADS} threads, none raced")


if __name__ == "__main__":
    main()
