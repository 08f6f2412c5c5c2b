"""Whether there are enough traces, of the kind that inference can learn from."""

from collections.abc import Iterator

import numpy as np

from resolvent.diagnosis.findings import Finding, Severity
from resolvent.diagnosis.steps import Steps
from resolvent.traces import TraceSet
from resolvent.traces.choosing import trace_keys
from resolvent.wording import amount

FEW_TRACES = 20
"""Traces below which most label histories are seen once, even in worlds of two states."""

SHORT = 2
"""Steps up to which hardly any label is read before a step: the first is read before step 1."""

MOSTLY_REPEATED = 0.5
"""Share of traces that equal an earlier one from which on it is worth a word."""

FEW_KINDS = 5
"""Different traces up to which many of them look like one way of acting, recorded again."""


def coverage(steps: Steps) -> Iterator[Finding]:
    """Find traces that are few, one, short, never terminated, or the same again and again."""
    traces = steps.traces
    yield from one_long_log(len(traces), traces.steps)
    if 1 < len(traces) < FEW_TRACES:
        yield _few(steps)
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
        cut = int(np.count_nonzero(traces.truncated))
        yield Finding(
            "never-terminated",
            Severity.NOTE,
            f"No trace is terminated ({cut:,} of {len(traces):,} are truncated): what ends an "
            f"episode is not known, and plans take it that none ends.",
            {"traces": len(traces), "truncated": cut},
        )
    yield from _repeated(steps)


def one_long_log(traces: int, steps: int) -> Iterator[Finding]:
    """Say that all steps are of one trace, if so."""
    if traces == 1:
        yield Finding(
            "one-long-log",
            Severity.WARNING,
            f"There is one trace, of {amount(steps, 'step')}: without restarts no two histories "
            f"are alike, and merging goes by little. Take strategy='search' (--strategy search), "
            f"or cut the log where the world starts afresh.",
            {"steps": steps},
        )


def _few(steps: Steps) -> Finding:
    """Say how few traces there are, and how many label histories only one of them has."""
    pairs = np.unique(steps.history * np.int64(len(steps.traces)) + steps.trace)
    traces_of = np.bincount(pairs // len(steps.traces))
    histories, once = int(np.count_nonzero(traces_of)), int(np.count_nonzero(traces_of == 1))
    return Finding(
        "few-traces",
        Severity.NOTE,
        f"There are {len(steps.traces)} traces, and {once:,} of {histories:,} label histories "
        f"occur in one of them alone: expect machines with wrong or missing states. "
        f"strategy='search' (--strategy search) needs fewer traces; hundreds are usual.",
        {"traces": len(steps.traces), "histories": histories, "histories_once": once},
    )


def _repeated(steps: Steps) -> Iterator[Finding]:
    """Say that many traces are equal to others, if so."""
    traces = steps.traces
    most = (1 - MOSTLY_REPEATED) * len(traces)
    if _at_least_different(traces) > most:
        return
    different = len(np.unique(trace_keys(traces)))
    if different > most:
        return
    monotonous = different <= FEW_KINDS and len(traces) >= FEW_TRACES
    yield Finding(
        "repeated-traces",
        Severity.WARNING if monotonous else Severity.NOTE,
        f"Of {len(traces):,} traces {different:,} are different: the others say nothing new. "
        f"Act in more ways, at random for instance.",
        {"traces": len(traces), "different": different},
    )


def _at_least_different(traces: TraceSet) -> int:
    """Return a lower bound on the number of different traces, found at little cost.

    What differs in length, or in the sum of its codes, is different.
    """
    actions = np.add.reduceat(traces.action_codes, traces.offsets[:-1], dtype=np.int64)
    starts = traces.offsets[:-1] + np.arange(len(traces))
    observations = np.add.reduceat(traces.observation_codes, starts, dtype=np.int64)
    return len(np.unique(np.stack([np.diff(traces.offsets), actions, observations]), axis=1).T)
