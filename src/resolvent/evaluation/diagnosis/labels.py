"""Check whether labels are events: they occur at times, repeatedly, and add to the observation."""

from collections.abc import Iterator
from math import sqrt
from typing import Final

import numpy as np

from resolvent.evaluation.diagnosis.findings import Finding, Severity
from resolvent.evaluation.diagnosis.steps import Steps
from resolvent.traces import NO_EVENT, Codes, TraceSet, label_text
from resolvent.traces.vocabulary import distinct_pairs

ALL_DIFFERENT: Final = 0.5
"""Number of labels per position from which on a label names the moment instead of an event."""

ENOUGH: Final = 20
"""Minimum number of positions to judge that: in a short trace labels differ anyway."""

MAX_DEVIATIONS: Final = 5.0
"""Maximum deviation of chi-square, in standard deviations, of independent columns."""

_SEED: Final = 0


def labels(steps: Steps) -> Iterator[Finding]:
    """Find labels that are absent, constant, always new, or one for each observation."""
    traces = steps.traces
    figures = {"labels": len(traces.labels), "positions": len(traces.label_codes)}
    common = frozenset.intersection(*traces.labels)
    if list(traces.labels) == [NO_EVENT]:
        yield Finding(
            "no-labels",
            Severity.NOTE,
            f"None of {figures['positions']:,} observations has a label: only a world that needs "
            f"no memory can be explained. Label the events that change what happens later, or have "
            f"them found: labels='auto' (--labels auto).",
            figures,
        )
    elif len(traces.labels) == 1 or common:
        if len(traces.labels) == 1:
            text = (
                f"The label is {label_text(common)} everywhere: it tells nothing but that time "
                f"passes. Label the events that change what happens later, or have them found: "
                f"labels='auto' (--labels auto)."
            )
        else:
            text = (
                f"Every label holds {label_text(common)}, which therefore tells nothing: leave it "
                f"out."
            )
        always = {**figures, "always": sorted(common)}
        yield Finding("constant-label", Severity.NOTE, text, always)
    if _never_repeat_in_a_trace(traces):
        yield _all_different("No label comes twice within a trace", figures)
    else:
        yield from labels_all_differ(len(traces.labels), len(traces.label_codes))
    if len(traces.labels) == len(traces.observations) > 1:
        sizes = len(traces.observations), len(traces.labels)
        pairs, _ = distinct_pairs(traces.observation_codes, traces.label_codes, *sizes)
        if len(pairs) == len(traces.labels):
            yield Finding(
                "labels-are-observations",
                Severity.NOTE,
                f"Each of {len(pairs):,} observations has a label of its own, so labels say "
                f"nothing beyond the observation. That works, but needs more traces than labels "
                f"for those events alone that change something, which labels='auto' looks for.",
                figures,
            )


def labels_all_differ(labels: int, positions: int) -> Iterator[Finding]:
    """Report labels that nearly all differ from each other."""
    if positions >= ENOUGH and labels >= ALL_DIFFERENT * positions:
        figures = {"labels": labels, "positions": positions}
        yield _all_different("Hardly any label comes twice", figures)


def _all_different(text: str, figures: dict[str, int]) -> Finding:
    return Finding(
        "labels-all-differ",
        Severity.WARNING,
        f"{text}: there are {figures['labels']:,} for {figures['positions']:,} observations made. "
        f"They may hold a clock, an id or a reading. Label events that come again, by the same "
        f"name each time.",
        figures,
    )


def _never_repeat_in_a_trace(traces: TraceSet) -> bool:
    """Return whether traces of some length never have a label twice, not even "no event"."""
    lengths = np.diff(traces.offsets) + 1
    if lengths.mean() < ENOUGH or len(traces.labels) < lengths.max():
        return False
    trace = np.repeat(np.arange(len(traces), dtype=np.int32), lengths)
    pairs, _ = distinct_pairs(trace, traces.label_codes, len(traces), len(traces.labels))
    return len(pairs) == len(traces.label_codes)


def labels_at_random(steps: Steps) -> bool:
    """Return whether labels depend neither on their observation nor on the step before."""
    traces = steps.traces
    labels = traces.after_step(traces.label_codes)
    columns = (
        traces.after_step(traces.observation_codes),
        traces.at_step(traces.observation_codes),
        traces.action_codes,
        steps.query,
    )
    return all(independent(labels, column) for column in columns)


def independent(first: Codes, second: Codes) -> bool:
    """Return whether two columns may be independent, by Pearson's chi-square.

    >>> codes = np.arange(1000, dtype=np.int32)
    >>> independent(codes % 2, codes % 3), independent(codes % 2, codes % 4)
    (True, False)
    """
    rows, row = np.unique(first, return_inverse=True)
    columns, column = np.unique(second, return_inverse=True)
    cells, count = np.unique(row * len(columns) + column, return_counts=True)
    in_row, in_column = np.bincount(row), np.bincount(column)
    expected = in_row[cells // len(columns)] * in_column[cells % len(columns)] / len(row)
    chi_square = float((count**2 / expected).sum()) - len(row)
    freedom = (len(rows) - 1) * (len(columns) - 1)
    return chi_square <= freedom + MAX_DEVIATIONS * sqrt(2 * freedom)


def shuffled_labels(traces: TraceSet) -> TraceSet:
    """Return the traces with all their labels, "no event" included, in random order."""
    codes = np.random.default_rng(_SEED).permutation(traces.label_codes)
    return TraceSet.from_columns(
        (traces.observations, traces.observation_codes),
        (traces.labels, codes),
        (traces.actions, traces.action_codes),
        (traces.rewards, traces.reward_codes),
        offsets=traces.offsets,
        terminated=traces.terminated,
        truncated=traces.truncated,
    )
