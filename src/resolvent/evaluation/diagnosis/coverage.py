"""Check whether there are enough traces, and whether their observations repeat.

Input: steps, or counts of queries. Output: findings about few, short or equal traces, and about
the share of new traces that would be unseen.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from resolvent._util.text import amount
from resolvent.evaluation.diagnosis.findings import Finding, Severity
from resolvent.evaluation.diagnosis.steps import Steps, shortened
from resolvent.replay.counts import Int64s
from resolvent.traces import Symbol, TraceSet
from resolvent.traces.digest import trace_hashes

FEW_TRACES: Final = 20
"""Number of traces below which most label histories occur once, even with two states."""

SHORT: Final = 2
"""Maximum number of steps in a short trace: the first label is read before step 1."""

MOSTLY_REPEATED: Final = 0.5
"""Share of traces equal to an earlier one from which on that is reported."""

FEW_DISTINCT: Final = 5
"""Maximum number of distinct traces that look like repeated recordings of one policy."""

UNSEEN_WARNING: Final = 0.1
"""Expected share of unseen steps from which on machines are of little use: if one step in ten is
unknown, hardly any longer episode stays in what is known."""

UNSEEN_NOTE: Final = 0.01
"""Expected share of unseen steps from which on that is reported."""

MOSTLY: Final = 0.5
"""Share of values that occur once from which on this is the rule, not the exception."""

_EXAMINED_VALUES: Final = 100
"""Number of values that are searched for fractions."""


def coverage(steps: Steps) -> Iterator[Finding]:
    """Find traces that are few, one, short, never terminated, or equal to each other."""
    traces = steps.traces
    yield from one_long_log(len(traces), traces.steps)
    if 1 < len(traces) < FEW_TRACES:
        yield _few_traces(steps)
    lengths = np.diff(traces.offsets)
    if np.median(lengths) <= SHORT:
        unread = bool(lengths.max() == 1) and not steps.timing.reads_at_reset
        yield Finding(
            "short-traces",
            Severity.WARNING if unread else Severity.NOTE,
            f"Half of the traces have at most {amount(int(np.median(lengths)), 'step')}, the "
            f"longest has {lengths.max():,}: hardly any label is read before a step, so "
            f"{'no' if unread else 'little'} memory can be found. Record longer episodes.",
            {"median": float(np.median(lengths)), "longest": int(lengths.max())},
        )
    if not traces.terminated.any():
        truncated = int(np.count_nonzero(traces.truncated))
        yield Finding(
            "never-terminated",
            Severity.NOTE,
            f"No trace is terminated ({truncated:,} of {len(traces):,} are truncated): plans "
            f"assume that no episode ends.",
            {"traces": len(traces), "truncated": truncated},
        )
    yield from _repeated_traces(traces)


def one_long_log(traces: int, steps: int) -> Iterator[Finding]:
    """Report that all steps are of one trace."""
    if traces == 1:
        yield Finding(
            "one-long-log",
            Severity.WARNING,
            f"There is one trace of {amount(steps, 'step')}: without resets no label sequence "
            f"repeats, so merging has little evidence. Use strategy='search' (--strategy search), "
            f"or split the log where the system was reset.",
            {"steps": steps},
        )


def _few_traces(steps: Steps) -> Finding:
    """Report the number of traces, and of label sequences that occur in only one of them."""
    pairs = np.unique(steps.sequence * np.int64(len(steps.traces)) + steps.trace)
    trace_counts = np.bincount(pairs // len(steps.traces))
    sequences = int(np.count_nonzero(trace_counts))
    once = int(np.count_nonzero(trace_counts == 1))
    return Finding(
        "few-traces",
        Severity.NOTE,
        f"There are {len(steps.traces)} traces, and {once:,} of {sequences:,} label sequences "
        f"occur in only one of them: expect machines with wrong or missing states. "
        f"strategy='search' (--strategy search) needs fewer traces; hundreds are usual.",
        {"traces": len(steps.traces), "sequences": sequences, "sequences_once": once},
    )


def _repeated_traces(traces: TraceSet) -> Iterator[Finding]:
    """Report that many traces are equal to others."""
    distinct = len(np.unique(trace_hashes(traces)))
    if distinct > (1 - MOSTLY_REPEATED) * len(traces):
        return
    is_monotonous = distinct <= FEW_DISTINCT and len(traces) >= FEW_TRACES
    yield Finding(
        "repeated-traces",
        Severity.WARNING if is_monotonous else Severity.NOTE,
        f"Only {distinct:,} of {len(traces):,} traces are distinct. Use a more varied policy, for "
        f"example a random one.",
        {"traces": len(traces), "different": distinct},
    )


def repetition(steps: Steps) -> Iterator[Finding]:
    """Estimate the share of the traces that machines inferred from the rest would not know.

    Each trace is treated as new in turn: its queries that no other trace has are unseen. Of a
    single trace, these are the queries that occur once.
    """
    traces = steps.traces
    count = np.bincount(steps.query, minlength=steps.queries)
    once = int(np.count_nonzero(count == 1))
    unseen = once
    if len(traces) > 1:
        unseen = int(count[in_one_trace(steps.query, steps.trace, steps.queries)].sum())
    observations = np.bincount(traces.observation_codes)
    values_once = int(np.count_nonzero(observations == 1))
    yield from unique_observations(traces.observations, values_once, len(traces.observation_codes))
    yield from hardly_repeats(unseen, traces.steps, once, int(np.count_nonzero(count)))


def in_one_trace(query: NDArray[Any], trace: Int64s, queries: int) -> NDArray[np.bool_]:
    """Return for each query whether at most one trace has it.

    The numbers of traces must be in ascending order.

    >>> in_one_trace(np.array([0, 0, 2, 2]), np.array([0, 0, 0, 1]), 3).tolist()
    [True, True, False]
    """
    first, last = np.zeros((2, queries), np.int64)
    # Of repeated assignments to an index, the last one stays.
    last[query] = trace
    first[query[::-1]] = trace[::-1]
    is_same: NDArray[np.bool_] = first == last
    return is_same


def unique_observations(values: Sequence[Symbol], once: int, positions: int) -> Iterator[Finding]:
    """Report that most observations occur once.

    `once` is the number of values that occur at just one of all positions.
    """
    # By Good and Turing, the values seen once, as a share of all positions, estimate
    # the share of new observations in new traces.
    if once < MOSTLY * len(values) or once < UNSEEN_WARNING * positions:
        return
    fractions = any(map(_has_fractions, values[:_EXAMINED_VALUES]))
    example = shortened(values[len(values) // 2])
    text = f"{once:,} of {len(values):,} observations occur once, such as {example}: "
    if fractions:
        text += (
            "they look like continuous measurements. Round them, or put them into intervals, by "
            "discretize='auto' (--set discretize=auto), so that equal states look equal."
        )
    else:
        text += (
            "they may contain a clock, a counter or an id. Remove it, so that equal states look "
            "equal."
        )
    figures = {"values": len(values), "once": once, "positions": positions, "fractions": fractions}
    yield Finding("unique-observations", Severity.WARNING, text, figures)


def hardly_repeats(unseen: int, steps: int, once: int, queries: int) -> Iterator[Finding]:
    """Report the expected share of unseen steps in new traces, if it is more than a few.

    `unseen` is the number of steps that machines inferred from the rest could not know.
    """
    share = unseen / steps
    if share < UNSEEN_NOTE:
        return
    counts = (
        f"({once:,} of {queries:,} pairs of observation and action occur once; machines "
        f"from the rest would not know {unseen:,} of {steps:,} steps)"
    )
    if share < UNSEEN_WARNING:
        severity = Severity.NOTE
        text = f"On new traces about {share:.0%} of the steps will be unseen {counts}."
    else:
        severity = Severity.WARNING
        extent = "Hardly any query repeats" if share >= MOSTLY else "Many queries do not repeat"
        text = (
            f"{extent}: on new traces about {share:.0%} of the steps will be unseen {counts}, "
            f"although machines may explain all of these traces. Make observations coarser, or "
            f"collect more traces."
        )
    figures = {
        "share": share,
        "unseen": unseen,
        "steps": steps,
        "queries": queries,
        "queries_once": once,
    }
    yield Finding("hardly-repeats", severity, text, figures)


def _has_fractions(symbol: Symbol) -> bool:
    """Return whether a symbol is or holds a number that is not an integer."""
    if isinstance(symbol, tuple):
        return any(map(_has_fractions, symbol))
    return isinstance(symbol, float) and not symbol.is_integer()
