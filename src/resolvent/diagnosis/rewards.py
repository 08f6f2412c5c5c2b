"""Whether rewards tell ways to act apart, and whether they depend on the time alone."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.diagnosis.findings import Finding, Severity
from resolvent.diagnosis.steps import ENOUGH_STEPS, Steps, outcomes_text
from resolvent.traces import symbol_text
from resolvent.traces.column_names import OBSERVATION, REWARD
from resolvent.wording import amount

FEW_PAID = 5
"""Steps with another reward than the usual one below which a plan rests on mere anecdotes."""

RARELY_PAID = 0.01
"""Where the unusual reward makes up more than this, few such steps only mean few steps."""

ORDERED = 0.95
"""Share of changes in one direction that makes rewards a matter of time; a coin gives half."""

MIN_CHANGES = 10
"""Changes needed to judge their direction: ten the same way by chance are one in 500."""

MIN_REWARDS = 3
"""Different rewards for one question: two can be before and after an event, which is no clock."""


FEWEST_TO_COME_BACK = 1_000
"""Steps that tell whether rewards come back."""

NEVER_BACK = 0.5
"""The share of rewards paid once, from which on fresh traces mostly pay what no machine knows."""


def rewards(steps: Steps) -> Iterator[Finding]:
    """Find rewards that are missing, always or never the same, rarely paid, or set by the clock."""
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
    """Say that the reward is always the same, hardly ever another, or always another."""
    steps, usual = int(counts.sum()), int(np.argmax(counts))
    told = symbol_text(values[usual])
    others = steps - int(counts[usual])
    if others == 0:
        yield Finding(
            "constant-reward",
            Severity.WARNING,
            f"The reward is {told} at each of {amount(steps, 'step')}: no way to act looks better "
            f"than another, so a plan would be meaningless. Collect traces in which something "
            f"else is paid.",
            {"reward": values[usual], "steps": steps},
        )
    elif others < FEW_PAID and others < RARELY_PAID * steps:
        yield Finding(
            "rare-reward",
            Severity.WARNING,
            f"The reward is {told} at all but {others:,} of {amount(steps, 'step')}: what it "
            f"depends on, and any plan, rests on so few. Collect more traces in which something "
            f"else is paid.",
            {"reward": values[usual], "others": others, "steps": steps},
        )
    once = int(np.count_nonzero(counts == 1))
    if steps >= FEWEST_TO_COME_BACK and once >= NEVER_BACK * steps:
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
    """Say that rewards for the same question fall or rise with the number of the step."""
    if len(counts) < MIN_REWARDS:
        return
    traces, question = steps.traces, steps.question
    usual = int(np.argmax(counts))
    paid = np.arange(traces.steps)
    if 2 * counts[usual] > traces.steps:  # such as 0 wherever nothing is reached
        paid = np.flatnonzero(traces.reward_codes != usual)
    paid = paid[:ENOUGH_STEPS]
    by_step = np.lexsort((traces.reward_codes[paid], steps.number[paid], question[paid]))
    paid = paid[by_step]
    # Codes of rewards rise as rewards do.
    reward, asked = traces.reward_codes[paid], question[paid]
    change = np.where(asked[1:] == asked[:-1], np.diff(reward), 0)
    varied = np.bincount(asked[1:][change != 0], minlength=steps.questions)
    clocked = varied >= MIN_REWARDS - 1
    change = np.where(clocked[asked[1:]], change, 0)
    changes = int(np.count_nonzero(change))
    change[np.diff(steps.number[paid]) == 0] = 0  # two rewards at the same time go no way
    rising, falling = (int(np.count_nonzero(sign * change > 0)) for sign in (1, -1))
    if changes < MIN_CHANGES or max(rising, falling) < ORDERED * changes:
        return
    direction = "fall" if falling > rising else "rise"
    worst = int(np.argmax(varied))
    rows = paid[asked == worst]
    codes, number = np.unique(traces.reward_codes[rows], return_counts=True)
    counted = list(zip(codes.tolist(), number.tolist(), strict=True))
    outcomes = steps.outcomes(REWARD, counted)
    told = steps.question_text(worst)
    yield Finding(
        "reward-by-time",
        Severity.WARNING,
        f"Rewards {direction} with the number of the step, at {max(rising, falling):,} of "
        f"{changes:,} changes: {told} pays {outcomes_text(outcomes, len(counted))}. A machine "
        f"would have to count steps. Give the reward without the time in it, and discount when "
        f"planning.",
        {
            "direction": direction,
            "changes": changes,
            "in_that_direction": max(rising, falling),
            "question": told,
            "rewards": len(codes),
        },
    )
