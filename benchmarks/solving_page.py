"""The page of worlds that are solved: what was run → docs/solving.md."""

import statistics
from typing import Any

_HEAD = """\
# Steps until a plan is optimal

Steps until a plan is truly optimal from every start: exploring on purpose
([`rs.solve`](how-to/solve.md)) beside random collection. *Truly* is judged by value iteration on
the hidden state, which neither of them sees. *Optimal from* is the step from which on the plan
stays optimal until exploring stops; it is looked at every 3% more steps. *Stops* is when
exploring says that it is done, with a statement of what holds then. For random collection it is
the smallest number of random steps, by bisection over episodes, whose machines and plan are
optimal. Figures are medians over seeds, with the least and the most; a dash is a world in which
that many steps were not enough: {most:,} random ones, {budget} of ours. The ratio is that of
medians; where random steps were not enough it is below the figure. CPU milliseconds are those
of one round (learn from a step, mend and plan, choose): half of the rounds take no more than the
first, 99 in 100 no more than the second, and none more than the third. Weights were chosen
while looking at these worlds and seeds: others may do worse.

<!-- Written by benchmarks/solving.py: run `make benchmark NAME=solving` instead of editing. -->

| world | seeds | optimal from | stops | says | random | ratio | ms a round |
|---|---|---|---|---|---|---|---|
"""


def page(results: dict[str, Any], budget: str = "200,000") -> str:
    """Return the page."""
    rows, ratios, lost, left = [], [], [], []
    most = 0
    for name, of_world in results.items():
        seeds = [seed for seed in of_world["explored"] if seed in of_world["random"]]
        if not seeds:
            steps = spread([run["steps"] for run in of_world["random"].values()])
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
            f"| {name} | {len(seeds)} | {spread(since)} | "
            f"{spread([run['stopped_at'] for run in runs])} | {says} | "
            f"{spread([run['steps'] for run in random])} | {ratio[0]} | "
            f"{' / '.join(f'{milliseconds:.0f}' for milliseconds in times)} |"
        )
    text = _HEAD.format(most=most, budget=budget) + "\n".join(rows) + "\n"
    text += (
        f"\nThe median ratio over these {len(rows)} worlds is {statistics.median(ratios):.3f}.\n"
    )
    if lost:
        text += f"\nRandom collection is ahead in single seeds of: {', '.join(lost)}.\n"
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


def spread(numbers: list[int | None]) -> str:
    """Return the median with the least and the most, and how many are missing.

    >>> spread([10, 1200, 30]), spread([10, None]), spread([None]), spread([7])
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
