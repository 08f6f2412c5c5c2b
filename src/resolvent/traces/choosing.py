"""Choosing some of many traces by what they hold, not by where they stand."""

import numpy as np
from numpy.typing import NDArray

from resolvent.traces.trace_set import TraceSet


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
    steps = np.zeros(traces.steps, np.uint64)
    columns = (
        (traces.at_step(traces.observation_codes), len(traces.observations)),
        (traces.after_step(traces.observation_codes), len(traces.observations)),
        (traces.at_step(traces.label_codes), len(traces.labels)),
        (traces.after_step(traces.label_codes), len(traces.labels)),
        (traces.action_codes, len(traces.actions)),
        (traces.reward_codes, len(traces.rewards)),
    )
    for number, (codes, size) in enumerate(columns):
        steps += _scrambled(np.arange(size, dtype=np.uint64) + np.uint64(number << 32))[codes]
    starts = np.repeat(traces.offsets[:-1], np.diff(traces.offsets))
    steps *= (2 * (np.arange(traces.steps) - starts) + 1).astype(np.uint64)
    ends = 2 * traces.terminated.astype(np.uint64) + traces.truncated.astype(np.uint64)
    return _scrambled(np.add.reduceat(steps, traces.offsets[:-1]) + ends)


def _scrambled(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64: neighbouring numbers become unlike ones."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
