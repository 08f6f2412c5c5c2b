"""Check whether labels are events, and whether rewards distinguish policies.

Input: steps, or counts of labels and rewards. Output: findings about labels that are absent,
constant, always new or redundant, and about rewards that are constant, rare, unique or timed.
"""

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from resolvent._util.text import amount
from resolvent.evaluation.diagnosis.findings import Finding, Severity
from resolvent.evaluation.diagnosis.steps import MAX_SORTED_STEPS, Steps, outcomes_text
from resolvent.traces import NO_EVENT, Codes, TraceSet, label_text, symbol_text
from resolvent.traces.schema import LABEL, OBSERVATION, REWARD
from resolvent.traces.trace_set import with_column
from resolvent.traces.vocabulary import distinct_pairs

# --- Labels --------------------------------------------------------------------------------------

ALL_DIFFERENT: Final = 0.5
"""Number of labels per position from which on a label names the moment instead of an event."""

ENOUGH: Final = 20
"""Minimum number of positions to judge that: in a short trace labels differ anyway."""

MAX_DEVIATIONS: Final = 5.0
"""Maximum deviation of chi-square, in standard deviations, of independent columns."""

_SEED: Final = 0


def label_findings(steps: Steps) -> Iterator[Finding]:
    """Find labels that are absent, constant, always new, or one for each observation."""
    traces = steps.traces
    figures = {"labels": len(traces.labels), "positions": len(traces.label_codes)}
    common = frozenset.intersection(*traces.labels)
    remedy = "Label the events with later effects, or discover them: labels='auto' (--labels auto)."
    if list(traces.labels) == [NO_EVENT]:
        text = (
            f"None of {figures['positions']:,} observations has a label: machines with one state "
            f"can explain only an environment without memory. {remedy}"
        )
        yield Finding("no-labels", Severity.NOTE, text, figures)
    elif len(traces.labels) == 1 or common:
        text = f"Every label holds {label_text(common)}, which adds no information: omit it."
        if len(traces.labels) == 1:
            text = f"Every label is {label_text(common)}: it only counts steps. {remedy}"
        always = {**figures, "always": sorted(common)}
        yield Finding("constant-label", Severity.NOTE, text, always)
    if _never_repeat_in_a_trace(traces):
        yield _all_different("No label occurs twice within a trace", figures)
    else:
        yield from labels_all_differ(len(traces.labels), len(traces.label_codes))
    if len(traces.labels) == len(traces.observations) > 1:
        sizes = len(traces.observations), len(traces.labels)
        pairs, _ = distinct_pairs(traces.observation_codes, traces.label_codes, *sizes)
        if len(pairs) == len(traces.labels):
            yield Finding(
                "labels-are-observations",
                Severity.NOTE,
                f"Each of {len(pairs):,} observations has a label of its own, so labels add "
                f"nothing to the observation. That works, but needs more traces than labels only "
                f"for events with later effects, which labels='auto' looks for.",
                figures,
            )


def labels_all_differ(labels: int, positions: int) -> Iterator[Finding]:
    """Report labels that nearly all differ from each other."""
    if positions >= ENOUGH and labels >= ALL_DIFFERENT * positions:
        figures = {"labels": labels, "positions": positions}
        yield _all_different("Hardly any label occurs twice", figures)


def _all_different(text: str, figures: dict[str, int]) -> Finding:
    return Finding(
        "labels-all-differ",
        Severity.WARNING,
        f"{text}: there are {figures['labels']:,} for {figures['positions']:,} observations. They "
        f"may contain a clock, an id or a measurement. Label events that recur, by the same name "
        f"each time.",
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


def are_labels_random(steps: Steps) -> bool:
    """Return whether labels depend neither on their observation nor on the step before."""
    traces = steps.traces
    labels = traces.after_step(traces.label_codes)
    columns = (
        traces.after_step(traces.observation_codes),
        traces.at_step(traces.observation_codes),
        traces.action_codes,
        steps.query,
    )
    return all(are_independent(labels, column) for column in columns)


def are_independent(first: Codes, second: Codes) -> bool:
    """Return whether two columns may be independent, by Pearson's chi-square.

    >>> codes = np.arange(1000, dtype=np.int32)
    >>> are_independent(codes % 2, codes % 3), are_independent(codes % 2, codes % 4)
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
    return with_column(traces, LABEL, traces.labels, codes)


# --- Rewards -------------------------------------------------------------------------------------

FEW_REWARDED: Final = 5
"""Number of steps with an unusual reward below which a plan rests on too few examples."""

RARELY_REWARDED: Final = 0.01
"""Share of steps with an unusual reward above which there are simply few steps."""

ORDERED: Final = 0.95
"""Share of changes in one direction from which on rewards depend on time; by chance it is half."""

MIN_CHANGES: Final = 10
"""Minimum number of changes to judge their direction: ten alike by chance are one in 500."""

MIN_REWARDS: Final = 3
"""Minimum number of rewards of one query: two can be before and after an event."""

MIN_STEPS: Final = 1_000
"""Minimum number of steps to judge whether rewards repeat."""

NEVER_REPEATED: Final = 0.5
"""Share of steps with a unique reward from which on new traces mostly have unknown rewards."""


def reward_findings(steps: Steps) -> Iterator[Finding]:
    """Find rewards that are missing, constant, unique, rare, or determined by the time."""
    traces = steps.traces
    if REWARD not in traces.columns and OBSERVATION in steps.outputs:  # a log has no use for them
        text = "The traces have no rewards: there will be no Reward Machine and no plan."
        yield Finding("no-rewards", Severity.NOTE, text, {})
    if REWARD not in traces.columns or REWARD not in steps.outputs:
        return
    counts = np.bincount(traces.reward_codes, minlength=len(traces.rewards))
    yield from hardly_varying(traces.rewards, counts)
    yield from _by_time(steps, counts)


def hardly_varying(values: Sequence[Any], counts: NDArray[Any]) -> Iterator[Finding]:
    """Report that the reward is constant, rarely different from the usual one, or unique."""
    steps, usual = int(counts.sum()), int(np.argmax(counts))
    reward = symbol_text(values[usual])
    unusual = steps - int(counts[usual])
    if unusual == 0:
        yield Finding(
            "constant-reward",
            Severity.WARNING,
            f"The reward is {reward} at each of {amount(steps, 'step')}: all policies look equal, "
            f"so a plan would be meaningless. Collect traces with other rewards.",
            {"reward": values[usual], "steps": steps},
        )
    elif unusual < FEW_REWARDED and unusual < RARELY_REWARDED * steps:
        yield Finding(
            "rare-reward",
            Severity.WARNING,
            f"The reward is {reward} at all but {unusual:,} of {amount(steps, 'step')}: the "
            f"Reward Machine and any plan rest on these few. Collect more traces with other "
            f"rewards.",
            {"reward": values[usual], "others": unusual, "steps": steps},
        )
    once = int(np.count_nonzero(counts == 1))
    if steps >= MIN_STEPS and once >= NEVER_REPEATED * steps:
        example = symbol_text(values[int(np.argmax(counts == 1))])
        yield Finding(
            "rewards-all-differ",
            Severity.WARNING,
            f"Hardly any reward occurs twice: {once:,} of {amount(steps, 'step')} have a unique "
            f"reward, such as {example}. No machine can predict such numbers: round them, by "
            f"reward_digits=N (--reward-digits N), or predict only outputs=['observation'] "
            f"(--outputs observation).",
            {"once": once, "rewards": len(values), "steps": steps},
        )


def _by_time(steps: Steps, counts: NDArray[np.int64]) -> Iterator[Finding]:
    """Report that the rewards of the same query fall or rise with the number of the step."""
    if len(counts) < MIN_REWARDS:
        return
    traces, query = steps.traces, steps.query
    usual = int(np.argmax(counts))
    rows = np.arange(traces.steps)
    if 2 * counts[usual] > traces.steps:  # such as 0 wherever no goal is reached
        rows = np.flatnonzero(traces.reward_codes != usual)
    rows = rows[:MAX_SORTED_STEPS]
    rows = rows[np.lexsort((traces.reward_codes[rows], steps.number[rows], query[rows]))]
    # Codes of rewards are in the order of the rewards.
    code, query = traces.reward_codes[rows], query[rows]
    change = np.where(query[1:] == query[:-1], np.diff(code), 0)
    changes_of = np.bincount(query[1:][change != 0], minlength=steps.queries)
    change = np.where(changes_of[query[1:]] >= MIN_REWARDS - 1, change, 0)
    changes = int(np.count_nonzero(change))
    change[np.diff(steps.number[rows]) == 0] = 0  # two rewards at the same time have no direction
    rising, falling = (int(np.count_nonzero(sign * change > 0)) for sign in (1, -1))
    if changes < MIN_CHANGES or max(rising, falling) < ORDERED * changes:
        return
    direction = "fall" if falling > rising else "rise"
    worst = int(np.argmax(changes_of))
    codes, number = np.unique(code[query == worst], return_counts=True)
    outcomes = steps.outcomes(REWARD, list(zip(codes.tolist(), number.tolist(), strict=True)))
    described = steps.query_text(worst)
    yield Finding(
        "reward-by-time",
        Severity.WARNING,
        f"Rewards {direction} with the number of the step, at {max(rising, falling):,} of "
        f"{changes:,} changes: {described} has the rewards {outcomes_text(outcomes, len(codes))}. "
        f"A machine would have to count steps. Remove the time from the reward, and discount when "
        f"planning.",
        {
            "direction": direction,
            "changes": changes,
            "in_that_direction": max(rising, falling),
            "query": described,
            "rewards": len(codes),
        },
    )
