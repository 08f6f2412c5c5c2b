"""Check whether labels determine the outputs; otherwise no deterministic machine exists."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from resolvent._util.text import short
from resolvent.evaluation.diagnosis.findings import Finding, Severity
from resolvent.evaluation.diagnosis.steps import MAX_SORTED_STEPS, OutputTally, Steps, outcomes_text
from resolvent.preprocess.timing import LabelTiming, labels_read
from resolvent.replay.counts import Int64s
from resolvent.traces.schema import OBSERVATION, REWARD

NOISE: Final = 0.1
"""Maximum share of differing outputs of a frequent query that looks like noise on a rule; more
looks like two rules. An error calls the same share rare (`RARE` of contradictions)."""

OFTEN: Final = 10  # minimum count of a query to judge by it: one of two differing is 50% at once
ENOUGH: Final = 20  # minimum number of repetitions within traces to conclude that these agree


def contradictions(steps: Steps) -> Iterator[Finding]:
    """Find queries with different outputs: at reset, after the same labels, by episode."""
    for output in steps.outputs:
        yield from _random_start(steps, output)
        queries = steps.after(steps.sequence)
        tally = steps.tally(output, queries)
        if len(tally.contradicted):
            yield _contradictions(steps, output, tally)
            yield from _layouts(steps, output, queries, tally)


def _random_start(steps: Steps, output: str) -> Iterator[Finding]:
    """Report first steps that differ before any label is read."""
    first = steps.traces.offsets[:-1]
    tally = steps.tally(output, steps.after(steps.sequence), first)
    if not len(tally.contradicted):
        return
    worst, counts = tally.worst()
    outcomes = steps.outcomes(output, counts)
    query, reads = steps.query_text(worst), steps.timing.reads_at_reset
    when = "after the same first label" if reads else "before any label is read"
    initial = LabelTiming.CURRENT_WITH_INITIAL
    with_label = steps.after(labels_read(steps.traces, initial))
    helps = not reads and not len(steps.tally(output, with_label, first).contradicted)
    option = f"timing='{initial}' (--timing {initial})"
    advice = f"The first labels distinguish them: {option}."
    if not helps:
        advice = (
            "No later label can help: fix the seed or the start, or show the difference in the "
            f"first observation{'' if reads else f', or in its label with {option}'}."
        )
    is_rare = int(tally.differing.sum()) <= NOISE * int(tally.total[tally.differing > 0].sum())
    noise = ", or there is noise, since other outcomes are rare" if is_rare else ""
    yield Finding(
        "random-start",
        Severity.ERROR,
        f"First steps differ {when}: {query} has the {_noun(output)} "
        f"{outcomes_text(outcomes, len(counts))}. The start or the environment is random{noise}. "
        f"{advice}",
        {
            "output": output,
            "query": query,
            "outcomes": outcomes,
            "queries": len(tally.contradicted),
            "first_labels_help": helps,
        },
    )


def _contradictions(steps: Steps, output: str, tally: OutputTally) -> Finding:
    """Report the outputs that the labels leave open, and whether they look like noise."""
    differing, repeated = int(tally.differing.sum()), tally.repeated
    is_open = tally.differing > 0
    is_often = is_open & (tally.total >= OFTEN)
    judged = is_often if is_often.any() else is_open
    rate = int(tally.differing[judged].sum()) / int(tally.total[judged].sum())
    worst, counts = tally.worst()
    outcomes, query = steps.outcomes(output, counts), steps.query_text(worst)
    # Counting steps, a machine may distinguish what events do not.
    by_count = not len(steps.tally(output, steps.after(steps.full_sequence)).contradicted)
    # Another label timing under which the traces do not contradict each other.
    others = (timing for timing in LabelTiming if timing is not steps.timing)
    samples = (replace(steps, timing=timing, outputs=(output,)) for timing in others)
    consistent = (other for other in samples if not other.has_contradictions(output))
    timing = next((other.timing for other in consistent), None)
    if timing is not None:
        advice = f"With timing='{timing}' (--timing {timing}) none differs."
    elif rate <= NOISE:
        advice = (
            f"At these queries that is rare ({_percent(rate)}), as with noise: exclude wrong "
            f"traces, or remove the noise from the environment."
        )
    else:
        advice = (
            f"At these queries that is common ({_percent(rate)}): an event has no label, or the "
            f"environment is random. Label that event."
        )
    if output == REWARD and timing is None:
        advice += " Rewards that differ in their last digits can be rounded with reward_digits=N."
    if by_count and timing is None:
        advice += " A machine can explain this only by counting steps without events."
    return Finding(
        "contradictions",
        Severity.WARNING if by_count else Severity.ERROR,
        f"Of {repeated:,} steps with the same labels, observation and action as others, "
        f"{differing:,} ({_percent(differing / repeated)}) have another {_noun(output)} than most, "
        f"for example {query} with {outcomes_text(outcomes, len(counts))}. {advice}",
        {
            "output": output,
            "steps": steps.traces.steps,
            "repeated": repeated,
            "differing": differing,
            "share": differing / repeated,
            "rate_where_it_happens": rate,
            "queries": len(tally.contradicted),
            "query": query,
            "outcomes": outcomes,
            "explained_by_counting_steps": by_count,
            "fitting_timing": None if timing is None else str(timing),
        },
    )


def _layouts(steps: Steps, output: str, queries: Int64s, tally: OutputTally) -> Iterator[Finding]:
    """Report that each episode agrees with itself, but episodes do not agree with each other."""
    # Contradicted queries are in ascending order.
    contradicted, queries = tally.contradicted, queries[:MAX_SORTED_STEPS]
    index = np.minimum(np.searchsorted(contradicted, queries), len(contradicted) - 1)
    rows = np.flatnonzero(contradicted[index] == queries)
    between = int(steps.tally(output, queries, rows).differing.sum())
    by_trace = index * np.int64(len(steps.traces)) + steps.trace[: len(index)]
    within = steps.tally(output, by_trace, rows)
    repeated, differing = within.repeated, int(within.differing.sum())
    if repeated < ENOUGH or differing > NOISE * min(repeated, between):
        return
    yield Finding(
        "layouts-differ",
        Severity.WARNING,
        f"After the same labels, observation and action the {_noun(output)} differs between "
        f"episodes ({between:,} times), but hardly within one ({differing:,} of {repeated:,} "
        f"times): the layout seems to be drawn at each reset. Fix its seed, or show it in the "
        f"first observation or label.",
        {
            "output": output,
            "queries": len(contradicted),
            "differing_between": between,
            "differing_within": differing,
            "repeated_within": repeated,
        },
    )


def _percent(share: float) -> str:
    """Write a share in percent, never a positive one as zero."""
    return f"{share:.1%}" if share >= 0.001 else "under 0.1%"


def _noun(output: str) -> str:
    return "next observation" if output == OBSERVATION else short(output)
