"""Whether what is seen comes again: what never does cannot be known of fresh traces."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.diagnosis.findings import Finding, Severity
from resolvent.diagnosis.steps import Steps, beginning
from resolvent.traces import Symbol

UNSEEN_WARNING = 0.1
"""Share of fresh steps expected to be unseen from which on machines are of little use: where
one step in ten is unknown, an episode of some length hardly ever stays in what is known."""

UNSEEN_NOTE = 0.01
"""Share of fresh steps expected to be unseen that is worth a word."""

MOSTLY = 0.5
"""Share of values seen once from which on being seen once is the rule, not the exception."""

_LOOKED_AT = 100


def repetition(steps: Steps) -> Iterator[Finding]:
    """Find out how much of the traces would be unknown to machines that did not see it.

    That is asked of each trace as if it were fresh: which of its questions does no other
    trace ask? Of a single trace, which questions are asked once?
    """
    traces = steps.traces
    asked = np.bincount(steps.question, minlength=steps.questions)
    once = int(np.count_nonzero(asked == 1))
    unseen = once
    if len(traces) > 1:
        unseen = int(asked[in_one_trace(steps.question, steps.trace, steps.questions)].sum())
    seen = np.bincount(traces.observation_codes)
    values_once = int(np.count_nonzero(seen == 1))
    yield from unique_observations(traces.observations, values_once, len(traces.observation_codes))
    yield from hardly_repeats(unseen, traces.steps, once, int(np.count_nonzero(asked)))


def in_one_trace(
    question: NDArray[Any], trace: NDArray[np.int64], questions: int
) -> NDArray[np.bool_]:
    """Return for each question whether no more than one trace asks it.

    The numbers of traces must rise from step to step.

    >>> in_one_trace(np.array([0, 0, 2, 2]), np.array([0, 0, 0, 1]), 3).tolist()
    [True, True, False]
    """
    first, last = np.zeros((2, questions), np.int64)
    # Where a place is assigned to repeatedly, the last value stands.
    last[question] = trace
    first[question[::-1]] = trace[::-1]
    found: NDArray[np.bool_] = first == last
    return found


def unique_observations(values: Sequence[Symbol], once: int, positions: int) -> Iterator[Finding]:
    """Say that most observations occur once, if they do.

    `once` counts the values that occur at just one of so many positions.
    """
    # The values seen once, as a share of all positions, estimate how many fresh
    # observations will be new (Good and Turing).
    if once < MOSTLY * len(values) or once < UNSEEN_WARNING * positions:
        return
    fractions = any(map(_has_fractions, values[:_LOOKED_AT]))
    example = beginning(values[len(values) // 2])
    text = f"{once:,} of {len(values):,} observations occur once, such as {example}: "
    if fractions:
        text += (
            "they look like continuous readings. Round them, or put them into intervals, by "
            "discretise='auto' (--discretise auto), so that equal situations look equal."
        )
    else:
        text += (
            "they may hold a clock, a counter or an id. Leave out what is different every "
            "time, so that equal situations look equal."
        )
    figures = {"values": len(values), "once": once, "positions": positions, "fractions": fractions}
    yield Finding("unique-observations", Severity.WARNING, text, figures)


def hardly_repeats(unseen: int, steps: int, once: int, questions: int) -> Iterator[Finding]:
    """Say how many steps of fresh traces will be unknown, if it is more than a few.

    `unseen` counts the steps that machines inferred from the rest could not have known.
    """
    share = unseen / steps
    if share < UNSEEN_NOTE:
        return
    figures = {
        "share": share,
        "unseen": unseen,
        "steps": steps,
        "questions": questions,
        "questions_once": once,
    }
    counted = (
        f"({once:,} of {questions:,} pairs of observation and action occur once; machines "
        f"from the rest would not know {unseen:,} of {steps:,} steps)"
    )
    if share < UNSEEN_WARNING:
        text = f"On fresh traces about {share:.0%} of the steps will be unseen {counted}."
        yield Finding("hardly-repeats", Severity.NOTE, text, figures)
        return
    extent = "Hardly anything repeats" if share >= MOSTLY else "Much is seen just once"
    text = (
        f"{extent}: on fresh traces about {share:.0%} of the steps will be unseen {counted}, "
        f"even by machines that explain all of these traces. Make observations coarser, or "
        f"collect more traces."
    )
    yield Finding("hardly-repeats", Severity.WARNING, text, figures)


def _has_fractions(symbol: Symbol) -> bool:
    """Whether a symbol is or holds a number that is not whole."""
    if isinstance(symbol, tuple):
        return any(map(_has_fractions, symbol))
    return isinstance(symbol, float) and not symbol.is_integer()
