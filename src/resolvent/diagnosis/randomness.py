"""Whether labels tell what comes next: where they do not, no deterministic machine can."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from resolvent.contradiction import fitting_timing
from resolvent.diagnosis.findings import Finding, Severity
from resolvent.diagnosis.steps import ENOUGH_STEPS, Steps, outcomes_text
from resolvent.diagnosis.tallies import Tally
from resolvent.reduction import trivial_codes
from resolvent.samples import LabelTiming, labels_read, output_samples
from resolvent.traces.column_names import OBSERVATION, REWARD
from resolvent.wording import short

NOISE = 0.1
"""Up to this share of other outcomes, what was asked often looks like noise on a rule; above,
it looks like two rules. It is also what an error calls rare (`contradiction.RARE`)."""

OFTEN = 10
"""Questions asked less often say little about which it is: one of two is 50% at once."""

ENOUGH = 20
"""Repetitions within traces needed to say that these agree: by chance alone, fewer might."""


def randomness(steps: Steps) -> Iterator[Finding]:
    """Find questions with different answers: at reset, after the same labels, by episode."""
    for output in steps.outputs:
        yield from _random_start(steps, output)
        after_labels = steps.asked_after(steps.history)
        tally = steps.tally(output, after_labels)
        if len(tally.contradicted):
            yield _contradictions(steps, output, tally)
            yield from _layouts(steps, output, after_labels, tally)


def _random_start(steps: Steps, output: str) -> Iterator[Finding]:
    """Say that first steps differ before any label was read that could tell them apart."""
    first = steps.traces.offsets[:-1]
    asked = steps.asked_after(steps.history)
    tally = steps.tally(output, asked, first)
    if not len(tally.contradicted):
        return
    question, counted = tally.worst()
    outcomes = steps.outcomes(output, counted)
    told = steps.question_text(question)
    reads = steps.timing.reads_at_reset
    when = "after the same first label" if reads else "before any label is read"
    initial = LabelTiming.CURRENT_WITH_INITIAL
    helps = not reads and not len(steps.tally(output, _with_first_label(steps), first).contradicted)
    if helps:
        advice = f"The first labels tell them apart: timing='{initial}' (--timing {initial})."
    else:
        advice = (
            "No later label can help: fix the seed or the start, or show the difference in the "
            "first observation"
        ) + ("." if reads else f", or in its label with timing='{initial}' (--timing {initial}).")
    rare = int(tally.differing.sum()) <= NOISE * int(tally.asked[tally.differing > 0].sum())
    noise = ", or there is noise, for other outcomes are rare" if rare else ""
    yield Finding(
        "random-start",
        Severity.ERROR,
        f"First steps differ {when}: {told} has the {_noun(output)} "
        f"{outcomes_text(outcomes, len(counted))}. The start, or the world, is random{noise}. "
        f"{advice}",
        {
            "output": output,
            "question": told,
            "outcomes": outcomes,
            "questions": len(tally.contradicted),
            "first_labels_help": helps,
        },
    )


def _with_first_label(steps: Steps) -> NDArray[np.int64]:
    """Return a number for each step that stands for its question and the label seen with it."""
    return steps.asked_after(labels_read(steps.traces, LabelTiming.CURRENT_WITH_INITIAL))


def _contradictions(steps: Steps, output: str, tally: Tally) -> Finding:
    """Say how much is left open once the labels are read, and what that looks like."""
    differing, repeated = int(tally.differing.sum()), tally.repeated
    open_ones = tally.differing > 0
    often = open_ones & (tally.asked >= OFTEN)
    judged = often if often.any() else open_ones
    rate = int(tally.differing[judged].sum()) / int(tally.asked[judged].sum())
    question, counted = tally.worst()
    outcomes = steps.outcomes(output, counted)
    told = steps.question_text(question)
    # Counting steps, a machine may tell apart what events do not.
    by_count = not len(steps.tally(output, steps.asked_after(steps.full_history)).contradicted)
    other = _fitting_timing(steps, output)
    text = (
        f"Of {repeated:,} steps whose labels so far, observation and action repeat, "
        f"{differing:,} ({_percent(differing / repeated)}) have another {_noun(output)} than most "
        f"of those alike, above all {told} with {outcomes_text(outcomes, len(counted))}. "
    )
    if other is not None:
        text += f"With timing='{other}' (--timing {other}) none differs."
    elif rate <= NOISE:
        text += (
            f"Where that happens it is rare ({_percent(rate)}), as with noise: leave out wrong "
            f"traces, or take the noise out of the world."
        )
    else:
        text += (
            f"Where that happens it is common ({_percent(rate)}): an event that matters has no "
            f"label, or the world is random. Label what makes the difference."
        )
    if output == REWARD and other is None:
        text += " Rewards that differ in their last digits can be rounded with reward_digits=N."
    if by_count and other is None:
        text += " Only by counting steps without events can a machine explain this."
    return Finding(
        "contradictions",
        Severity.WARNING if by_count else Severity.ERROR,
        text,
        {
            "output": output,
            "steps": steps.traces.steps,
            "repeated": repeated,
            "differing": differing,
            "share": differing / repeated,
            "rate_where_it_happens": rate,
            "questions": len(tally.contradicted),
            "question": told,
            "outcomes": outcomes,
            "explained_by_counting_steps": by_count,
            "fitting_timing": None if other is None else str(other),
        },
    )


def _fitting_timing(steps: Steps, output: str) -> LabelTiming | None:
    """Return another label timing under which the traces do not contradict each other."""
    return fitting_timing(
        steps.traces,
        lambda traces, histories: output_samples(traces, histories, output),
        steps.timing,
        trivial_codes(steps.traces.labels),
    )


def _layouts(
    steps: Steps, output: str, asked: NDArray[np.int64], tally: Tally
) -> Iterator[Finding]:
    """Say that episodes agree with themselves and not with each other, if so."""
    # What is contradicted comes in rising order.
    contradicted, asked = tally.contradicted, asked[:ENOUGH_STEPS]
    place = np.minimum(np.searchsorted(contradicted, asked), len(contradicted) - 1)
    rows = np.flatnonzero(contradicted[place] == asked)
    between = int(steps.tally(output, asked, rows).differing.sum())
    by_trace = place * np.int64(len(steps.traces)) + steps.trace[: len(place)]
    within = steps.tally(output, by_trace, rows)
    repeated, differing = within.repeated, int(within.differing.sum())
    if repeated < ENOUGH or differing > NOISE * min(repeated, between):
        return
    yield Finding(
        "layouts-differ",
        Severity.WARNING,
        f"Episodes agree with themselves and not with each other: {amount_of(output, between)} "
        f"between episodes where the labels read, observation and action are the same, "
        f"{differing:,} among {repeated:,} such steps of one episode. The world seems to be drawn "
        f"anew at each reset: fix its seed, or show in the first observation or label which "
        f"one it is.",
        {
            "output": output,
            "questions": len(contradicted),
            "differing_between": between,
            "differing_within": differing,
            "repeated_within": repeated,
        },
    )


def amount_of(output: str, number: int) -> str:
    """Write how many steps have another outcome.

    >>> amount_of("reward", 1), amount_of("observation", 1200)
    ('1 other reward', '1,200 other next observations')
    """
    return f"{number:,} other {_noun(output)}{'s' * (number != 1)}"


def _percent(share: float) -> str:
    """Write a share, never as none if there is some."""
    return f"{share:.1%}" if share >= 0.001 else "under 0.1%"


def _noun(output: str) -> str:
    return "next observation" if output == OBSERVATION else short(output)
