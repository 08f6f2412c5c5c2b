"""Choosing traces by their content instead of their position, and cutting them short."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.traces.digest import content_hashes
from resolvent.traces.schema import ACTION, BASIC_COLUMNS, LABEL, OBSERVATION, OBSERVED_COLUMNS
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes


def sample_traces(traces: TraceSet, share: float) -> NDArray[np.bool_]:
    """Mark about this share of the traces, chosen by their content.

    The order of the traces makes no difference, and of equal traces all are marked or none.

    >>> from resolvent.traces.trace import Trace
    >>> traces = TraceSet([Trace([0, 1], [None, None], ["go"], [pay % 20]) for pay in range(40)])
    >>> chosen = sample_traces(traces, 0.8)
    >>> int(chosen.sum()), bool((chosen[:20] == chosen[20:]).all())
    (32, True)
    """
    if len(traces) == 0:
        return np.empty(0, bool)
    keys = trace_hashes(traces)
    largest = np.sort(keys)[max(round(share * len(traces)), 1) - 1]
    chosen: NDArray[np.bool_] = keys <= largest
    return chosen


def prefixes(traces: TraceSet, lengths: NDArray[np.int64]) -> TraceSet:
    """Return the first steps of each trace, `lengths` of them; shortened traces are truncated.

    >>> from resolvent.traces.trace import Trace
    >>> walk = Trace(["hall", "stairs", "attic"], [None, None, "key"], ["up", "up"], [0, 1])
    >>> prefixes(TraceSet([walk]), np.array([1]))[0].observations
    ('hall', 'stairs')
    """
    all_lengths = np.diff(traces.offsets)
    step = np.arange(traces.steps) - np.repeat(traces.offsets[:-1], all_lengths)
    acted = step < np.repeat(lengths, all_lengths)
    seen = np.insert(acted, traces.offsets[:-1], True)  # the observation before the first step
    is_complete = lengths == all_lengths
    return TraceSet.taking_over(
        {
            name: (values, codes[seen if name in OBSERVED_COLUMNS else acted])
            for name, (values, codes) in traces.all_columns.items()
        },
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        terminated=traces.terminated & is_complete,
        truncated=traces.truncated | ~is_complete,
    )


def trace_hashes(traces: TraceSet) -> NDArray[np.int64]:
    """Return a hash of each trace: equal for equal traces, different for almost all others."""
    return content_hashes(core_columns(traces, traces.codes), traces.values)


def core_columns(
    traces: TraceSet, codes: Mapping[str, Codes], sizes: Mapping[str, int] | None = None
) -> _core.TraceColumns:
    """Return traces as the C++ core takes them.

    `codes` are those of every column by name, and `sizes` the numbers of codes of each; None
    if they are the traces' own.
    """
    if sizes is None:
        sizes = {name: len(values) for name, values in traces.values.items()}
    outputs = [name for name in codes if name not in BASIC_COLUMNS]
    return _core.TraceColumns(
        observation=codes[OBSERVATION],
        label=codes[LABEL],
        action=codes[ACTION],
        outputs=[codes[name] for name in outputs],
        offsets=traces.offsets,
        ended=traces.terminated + 2 * traces.truncated.astype(np.int32),
        observations=sizes[OBSERVATION],
        labels=sizes[LABEL],
        actions=sizes[ACTION],
        output_sizes=[sizes[name] for name in outputs],
    )
