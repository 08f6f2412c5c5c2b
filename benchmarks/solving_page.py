"""Measurements of `solving.py` → docs/solving.md."""

import statistics
from typing import Any

_HEAD = """\
# Steps until a plan is optimal

The number of steps until the plan is optimal from every start, with [`rs.solve`](how-to/solve.md) and
with random exploration. Value iteration on the hidden states decides whether a plan is optimal;
neither method sees them. *Optimal from* is the step from which the plan stays optimal until the stop,
checked after every 3% more steps. *Stops* is the step at which `rs.solve` stops, and *reason* its
stop reason. For random exploration, the figure is the smallest number of steps whose machines and
plan are optimal, by bisection over episodes. Figures are medians over seeds, with minimum and
maximum; a dash is a world in which the steps were not enough: {most:,} random ones, {budget} of ours.
The ratio is that of medians, and an upper bound where random steps were not enough. CPU milliseconds
are those of one round (learn from a step, repair and plan, choose): median, 99th percentile and
maximum. Weights were chosen with these worlds and seeds in view: other worlds may do worse.

<!-- Written by benchmarks/solving.py: run `make benchmark NAME=solving` instead of editing. -->

| world | seeds | optimal from | stops | reason | random | ratio | ms per round |
|---|---|---|---|---|---|---|---|
"""


def page(results: dict[str, Any], budget: str = "200,000") -> str:
    """Return the page."""
    rows, ratios, lost, left = [], [], [], []
    most = 0
    for name, of_world in results.items():
        seeds = [seed for seed in of_world["explored"] if seed in of_world["random"]]
        if not seeds:
            steps = output_counts([run["steps"] for run in of_world["random"].values()])
            left.append(f"{name} ({steps})")
            continue
        runs = [of_world["explored"][seed] for seed in seeds]
        random = [of_world["random"][seed] for seed in seeds]
        most = max([most, *(run["most"] for run in random)])
        since = [run["optimal_since"] for run in runs]
        ratio = ratio_of(since, random)
        ratios.append(ratio[1])
        more = [
            seed
            for seed, steps, baseline in zip(seeds, since, random, strict=True)
            if steps is None or steps > (baseline["steps"] or baseline["most"])
        ]
        if more:
            lost.append(f"{name} ({len(more)} of {len(seeds)})")
        says = ", ".join(sorted({run["claims"] for run in runs}))
        times = [
            1000 * statistics.median(row)
            for row in zip(*(run["round"] for run in runs), strict=True)
        ]
        rows.append(
            f"| {name} | {len(seeds)} | {output_counts(since)} | "
            f"{output_counts([run['stopped_at'] for run in runs])} | {says} | "
            f"{output_counts([run['steps'] for run in random])} | {ratio[0]} | "
            f"{' / '.join(f'{milliseconds:.0f}' for milliseconds in times)} |"
        )
    text = _HEAD.format(most=most, budget=budget) + "\n".join(rows) + "\n"
    text += (
        f"\nThe median ratio over these {len(rows)} worlds is {statistics.median(ratios):.3f}.\n"
    )
    if lost:
        text += f"\nRandom exploration is ahead for single seeds of: {', '.join(lost)}.\n"
    if left:
        text += (
            f"\nNot explored when this was written, with the random steps until optimal: "
            f"{', '.join(left)}.\n"
        )
    return text


def ratio_of(since: list[int | None], random: list[dict[str, Any]]) -> tuple[str, float]:
    """Compare medians; what did not get there counts as the most it was given, or as infinite.

    >>> ratio_of([10, 20, None], [{"steps": 100, "most": 500}, {"steps": None, "most": 500}])
    ('<0.067', 0.06666666666666667)
    """
    ours = statistics.median(float("inf") if number is None else number for number in since)
    theirs = statistics.median(number["steps"] or number["most"] for number in random)
    at_least = sum(number["steps"] is None for number in random) * 2 >= len(random)
    below = "<" if at_least and ours < float("inf") else ""
    return (f"{below}{ours / theirs:.3f}" if ours < float("inf") else "–"), ours / theirs


def output_counts(numbers: list[int | None]) -> str:
    """Return the median with the least and the most, and how many are missing.

    >>> output_counts([10, 1200, 30]), output_counts([10, None]), output_counts([None]), output_counts([7])
    ('30 (10 to 1,200)', '10 (1 of 2 never)', '–', '7')
    """
    values = sorted(number for number in numbers if number is not None)
    if not values:
        return "–"
    middle = f"{statistics.median(values):,.0f}"
    notes = [f"{values[0]:,} to {values[-1]:,}"] if values[0] != values[-1] else []
    if len(values) < len(numbers):
        notes.append(f"{len(numbers) - len(values)} of {len(numbers)} never")
    return middle + (f" ({', '.join(notes)})" if notes else "")
