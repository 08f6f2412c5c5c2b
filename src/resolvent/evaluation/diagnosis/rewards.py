"""Check whether rewards distinguish policies, and whether they depend on the time alone."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from resolvent._util.text import amount
from resolvent.evaluation.diagnosis.findings import Finding, Severity
from resolvent.evaluation.diagnosis.steps import MAX_SORTED_STEPS, Steps, outcomes_text
from resolvent.traces import symbol_text
from resolvent.traces.schema import OBSERVATION, REWARD

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


def rewards(steps: Steps) -> Iterator[Finding]:
    """Find rewards that are missing, constant, unique, rare, or determined by the time."""
    traces = steps.traces
    if REWARD not in traces.columns and OBSERVATION in steps.outputs:  # a log has no use for them
        yield Finding(
            "no-rewards",
            Severity.NOTE,
            "The traces have no rewards: there will be no Reward Machine, and nothing to plan for.",
            {},
        )
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
            f"The reward is {reward} at each of {amount(steps, 'step')}: no way to act looks "
            f"better than another, so a plan would be meaningless. Collect traces in which "
            f"something else is paid.",
            {"reward": values[usual], "steps": steps},
        )
    elif unusual < FEW_REWARDED and unusual < RARELY_REWARDED * steps:
        yield Finding(
            "rare-reward",
            Severity.WARNING,
            f"The reward is {reward} at all but {unusual:,} of {amount(steps, 'step')}: what it "
            f"depends on, and any plan, rests on so few. Collect more traces in which something "
            f"else is paid.",
            {"reward": values[usual], "others": unusual, "steps": steps},
        )
    once = int(np.count_nonzero(counts == 1))
    if steps >= MIN_STEPS and once >= NEVER_REPEATED * steps:
        example = symbol_text(values[int(np.argmax(counts == 1))])
        yield Finding(
            "rewards-all-differ",
            Severity.WARNING,
            f"Hardly any reward is paid twice: {once:,} of {amount(steps, 'step')} pay what no "
            f"other does, such as {example}. No machine can foretell such numbers: round them, by "
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
    is_clocked = changes_of >= MIN_REWARDS - 1
    change = np.where(is_clocked[query[1:]], change, 0)
    changes = int(np.count_nonzero(change))
    change[np.diff(steps.number[rows]) == 0] = 0  # two rewards at the same time have no direction
    rising, falling = (int(np.count_nonzero(sign * change > 0)) for sign in (1, -1))
    if changes < MIN_CHANGES or max(rising, falling) < ORDERED * changes:
        return
    direction = "fall" if falling > rising else "rise"
    worst = int(np.argmax(changes_of))
    codes, number = np.unique(code[query == worst], return_counts=True)
    outcomes = steps.outcomes(REWARD, list(zip(codes.tolist(), number.tolist(), strict=True)))
    question = steps.question_text(worst)
    yield Finding(
        "reward-by-time",
        Severity.WARNING,
        f"Rewards {direction} with the number of the step, at {max(rising, falling):,} of "
        f"{changes:,} changes: {question} pays {outcomes_text(outcomes, len(codes))}. A machine "
        f"would have to count steps. Give the reward without the time in it, and discount when "
        f"planning.",
        {
            "direction": direction,
            "changes": changes,
            "in_that_direction": max(rising, falling),
            "question": question,
            "rewards": len(codes),
        },
    )
