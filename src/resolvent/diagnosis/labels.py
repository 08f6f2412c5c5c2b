"""Whether labels are events: there at times, again and again, and beyond the observation."""

from collections.abc import Iterator

import numpy as np

from resolvent.diagnosis.findings import Finding, Severity
from resolvent.diagnosis.steps import Steps
from resolvent.traces import NO_EVENT, TraceSet, label_text
from resolvent.traces.vocabulary import distinct_pairs

ALL_DIFFERENT = 0.5
"""Labels for each observation made from which on a label is no event but a name of the moment."""

ENOUGH = 20
"""Observations needed to judge that: in a trace of two steps labels differ by nature."""


def labels(steps: Steps) -> Iterator[Finding]:
    """Find labels that are never there, always there, always new, or one for each observation."""
    traces = steps.traces
    names = {"labels": len(traces.labels), "positions": len(traces.label_codes)}
    always = frozenset.intersection(*traces.labels)
    if list(traces.labels) == [NO_EVENT]:
        yield Finding(
            "no-labels",
            Severity.NOTE,
            f"None of {names['positions']:,} observations has a label: only a world that needs no "
            f"memory can be explained. Label the events that change what happens later, or have "
            f"them found: labels='auto' (--labels auto).",
            names,
        )
    elif len(traces.labels) == 1:
        yield Finding(
            "constant-label",
            Severity.NOTE,
            f"The label is {label_text(always)} everywhere: it tells nothing but that time passes. "
            f"Label the events that change what happens later, or have them found: "
            f"labels='auto' (--labels auto).",
            {**names, "always": sorted(always)},
        )
    elif always:
        yield Finding(
            "constant-label",
            Severity.NOTE,
            f"Every label holds {label_text(always)}, which therefore tells nothing: leave it out.",
            {**names, "always": sorted(always)},
        )
    if _never_twice_in_a_trace(traces):
        yield _all_different("No label comes twice within a trace", names)
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
                names,
            )


def labels_all_differ(labels: int, positions: int) -> Iterator[Finding]:
    """Say that there are about as many labels as observations were made, if so."""
    if positions >= ENOUGH and labels >= ALL_DIFFERENT * positions:
        names = {"labels": labels, "positions": positions}
        yield _all_different("Hardly any label comes twice", names)


def _all_different(found: str, names: dict[str, int]) -> Finding:
    """Return the finding that labels do not come again."""
    return Finding(
        "labels-all-differ",
        Severity.WARNING,
        f"{found}: there are {names['labels']:,} for {names['positions']:,} observations made. "
        f"They may hold a clock, an id or a reading. Label events that come again, by the same "
        f"name each time.",
        names,
    )


def _never_twice_in_a_trace(traces: TraceSet) -> bool:
    """Whether traces of some length never have a label twice, not even "no event"."""
    lengths = np.diff(traces.offsets) + 1
    if lengths.mean() < ENOUGH or len(traces.labels) < lengths.max():
        return False
    of_trace = np.repeat(np.arange(len(traces), dtype=np.int32), lengths)
    pairs, _ = distinct_pairs(of_trace, traces.label_codes, len(traces), len(traces.labels))
    return len(pairs) == len(traces.label_codes)
