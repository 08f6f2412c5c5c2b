"""Choosing some of many traces by what they hold, not by where they stand."""

import numpy as np
from numpy.typing import NDArray

from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes


def choose_traces(traces: TraceSet, share: float) -> NDArray[np.bool_]:
    """Mark about this share of the traces, chosen by their content.

    The order of the traces makes no difference, and equal traces are all marked
    or none is.

    >>> from resolvent.traces.trace import Trace
    >>> traces = TraceSet([Trace([0, 1], [None, None], ["go"], [pay % 20]) for pay in range(40)])
    >>> chosen = choose_traces(traces, 0.8)
    >>> int(chosen.sum()), bool((chosen[:20] == chosen[20:]).all())
    (32, True)
    """
    if len(traces) == 0:
        return np.empty(0, bool)
    prints = fingerprints(traces)
    most = np.sort(prints)[max(round(share * len(traces)), 1) - 1]
    chosen: NDArray[np.bool_] = prints <= most
    return chosen


def fingerprints(traces: TraceSet) -> NDArray[np.uint64]:
    """Return a number for each trace that equal traces share and others almost never do."""
    starts = traces.offsets[:-1]
    lengths = np.diff(traces.offsets)
    seen = _of_codes(traces.observation_codes, len(traces.observations), 1)
    seen += _of_codes(traces.label_codes, len(traces.labels), 2)
    done = _of_codes(traces.action_codes, len(traces.actions), 3)
    done += _of_codes(traces.reward_codes, len(traces.rewards), 4)
    number = np.arange(len(traces))
    ends = 2 * traces.terminated.astype(np.uint64) + traces.truncated.astype(np.uint64)
    whole = _summed(seen, starts + number, lengths + 1) + _summed(done, starts, lengths)
    return _scrambled(whole + ends)


def _of_codes(codes: Codes, size: int, salt: int) -> NDArray[np.uint64]:
    return _scrambled(np.arange(size, dtype=np.uint64) + np.uint64(salt << 32))[codes]


def _summed(
    numbers: NDArray[np.uint64], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """Sum each trace's numbers, each times an odd number that tells its step."""
    odd = np.arange(1, 2 * len(numbers) + 1, 2, dtype=np.uint64)
    odd -= np.repeat(2 * starts.astype(np.uint64), lengths)
    odd *= numbers
    return np.add.reduceat(odd, starts)


def _scrambled(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64: neighbouring numbers become unlike ones."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
