"""Measured cells → the tables and curves of docs/rivals.md."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from cells import SEEDS, Cells
from evaluating import ENOUGH, solved_at
from matplotlib.figure import Figure

from resolvent._util.files import atomic_write

DOCS = Path(__file__).parents[2] / "docs"
PAGE, PICTURE = DOCS / "rivals.md", DOCS / "pictures" / "rivals.svg"
BEGIN = "<!-- Written by benchmarks/rivals/page.py: run `make benchmark NAME=rivals` instead. -->"
END = "<!-- Until here. -->"

TITLES = {
    "House": "house",
    "HouseInterference": "house, interference",
    "PhaseGrid3": "phase grid 3×3",
    "TMaze": "T-maze, corridor 10",
    "OfficeCoffee": "office, coffee",
    "TMaze100": "T-maze, corridor 100",
}
LOOKS = {
    "rs.solve": ("#0072B2", "-"),
    "machines from random episodes, plan": ("#56B4E9", "-"),
    "LRM": ("#009E73", "--"),
    "JIRP": ("#E69F00", "--"),
    "JIRP's loop, both machines": ("#E69F00", "-"),
    "recurrent PPO": ("#D55E00", "-"),
    "PPO, last 16 steps": ("#CC79A7", "-"),
    "PPO, last 4 steps": ("#CC79A7", ":"),
    "DQN, last 16 steps": ("#000000", "-."),
}
"""Okabe and Ito's colours, which the colour-blind can tell apart; loops are dashed."""

Found = list[dict[str, Any]]


def grouped(cells: Cells) -> dict[tuple[str, str], Found]:
    """Return the cells of each world and method, by seed."""
    groups: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for key, cell in cells.cells.items():
        world, method, seed = key.split(" | ")
        groups.setdefault((world, method), {})[int(seed)] = cell
    return {both: [group[seed] for seed in sorted(group)] for both, group in groups.items()}


def steps_text(runs: Found) -> str:
    """Write the median of the steps to 95% and their range, over all seeds."""
    reached = [solved_at(run["steps"], run["shares"]) for run in runs]
    steps = sorted(at for at in reached if at is not None)
    most = max(run["most"] for run in runs)
    seeds = "" if len(runs) == SEEDS else f"{len(runs)} seed{'s' * (len(runs) > 1)}"
    if not steps:
        return f"never in {most:,}" + (f" ({seeds})" if seeds else "")
    middle = statistics.median(float("inf") if at is None else at for at in reached)
    notes = []
    if len(steps) < len(runs):
        notes = [f"{steps[0]:,} to never", f"{len(steps)} of {len(runs)}"]
    elif steps[0] != steps[-1]:
        notes = [f"{steps[0]:,} to {steps[-1]:,}"]
    if seeds:
        notes.append(seeds)
    text = f"{middle:,.0f}" if middle <= most else f"over {most:,}"
    return f"{text} ({'; '.join(notes)})" if notes else text


def end_text(runs: Found) -> str:
    """Write after how many steps runs ended: the median, and the range."""
    steps = sorted(run["steps"][-1] for run in runs)
    return f"{statistics.median(steps):,.0f} ({steps[0]:,} to {steps[-1]:,})"


def share_text(runs: Found) -> str:
    """Write the share of the optimum at the end of a run: the median, and the range."""
    shares = sorted(run["shares"][-1] for run in runs)
    text = f"{statistics.median(shares):.0%}"
    low, high = f"{shares[0]:.0%}", f"{shares[-1]:.0%}"
    return text if low == high else f"{text} ({low} to {high})"


def seconds_text(runs: Found) -> str:
    """Write what a run took of the processor, in seconds, in the median."""
    seconds = statistics.median(run["seconds"] for run in runs)
    return f"{seconds:.1f}" if seconds < 10 else f"{seconds:.0f}"


def table(
    groups: dict[tuple[str, str], Found], write: Any, methods: Sequence[str] = tuple(LOOKS)
) -> str:
    """Write a table in Markdown, a row for each method and a column for each world."""
    worlds = [name for name in TITLES if any(world == name for world, _ in groups)]
    lines = ["| method | " + " | ".join(TITLES[name] for name in worlds) + " |"]
    lines.append("|---|" + "--:|" * len(worlds))
    for method in methods:
        row = [groups.get((world, method)) for world in worlds]
        if any(row):
            texts = (write(runs) if runs else "" for runs in row)
            lines.append(f"| {method} | {' | '.join(texts)} |")
    return "\n".join(lines)


def search_table(cells: Cells) -> str:
    """Write what was tried for the networks before anything was compared."""
    lines = ["| tried | steps to 95% | best share | at the end |", "|---|--:|--:|--:|"]
    for name, result in sorted(cells.search.items()):
        at = f"{result['solved_at']:,}" if result["solved_at"] else f"never in {result['steps']:,}"
        lines.append(f"| {name} | {at} | {result['best']:.0%} | {result['last']:.0%} |")
    return "\n".join(lines)


def tables(cells: Cells) -> str:
    """Write all that the page has of the cells."""
    groups = grouped(cells)
    parts = {
        "Steps to 95% of the optimum": table(groups, steps_text),
        "Steps until `rs.solve` stops by itself": table(groups, end_text, ["rs.solve"]),
        "Share of the optimum at the end": table(groups, share_text),
        "Seconds of the processor": table(groups, seconds_text),
        "What was tried for the networks": search_table(cells),
    }
    return "\n\n".join(f"### {title}\n\n{text}" for title, text in parts.items())


def write(cells: Cells) -> None:
    """Draw the curves, and write the tables into the page."""
    draw(grouped(cells), PICTURE)
    head, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    tail = rest.split(END)[1]
    with atomic_write(PAGE) as file:
        file.write(f"{head}{BEGIN}\n\n{tables(cells)}\n\n{END}{tail}".encode())


def draw(groups: dict[tuple[str, str], Found], path: Path) -> None:
    """Draw for each world the share of the optimum by steps: median, and band over the seeds."""
    worlds = [name for name in TITLES if any(world == name for world, _ in groups)]
    style = {"svg.hashsalt": "resolvent", "svg.fonttype": "path", "font.size": 9.0}
    with mpl.rc_context(style):
        figure = Figure(figsize=(10.0, 6.2), layout="constrained")
        across = 3
        down = -(-len(worlds) // across)
        for place, world in enumerate(worlds):
            axes = figure.add_subplot(down, across, place + 1)
            for method, (colour, line) in LOOKS.items():
                if runs := groups.get((world, method)):
                    _draw_one(axes, runs, method, colour, line)
            _label(axes, TITLES[world])
            if place % across == 0:
                axes.set_ylabel("share of the optimum")
        named = dict(
            pair
            for axes in figure.axes
            for pair in zip(*reversed(axes.get_legend_handles_labels()), strict=True)
        )
        order = [method for method in LOOKS if method in named]
        figure.legend(
            [named[method] for method in order],
            order,
            loc="outside lower center",
            ncols=4,
            frameon=False,
        )
        with atomic_write(path) as file:
            figure.savefig(file, format="svg", metadata={"Date": None})


def _draw_one(axes: Any, runs: Found, name: str, colour: str, line: str) -> None:
    most = max(run["most"] for run in runs)
    at = np.geomspace(10, most, 80)
    rows = np.array([_held(run["steps"], run["shares"], at) for run in runs])
    # Points between which nothing changes only make the file larger.
    changes = (np.diff(rows, axis=1) != 0).any(axis=0)
    changed = np.concatenate([[True], changes[:-1], [True]])
    at, rows = at[changed], rows[:, changed]
    middle = np.median(rows, axis=0)
    axes.step(at, middle, line, where="post", color=colour, linewidth=1.5, label=name)
    low, high = rows.min(axis=0), rows.max(axis=0)
    axes.fill_between(at, low, high, step="post", color=colour, alpha=0.12, linewidth=0)


def _held(steps: Sequence[int], shares: Sequence[float], at: Any) -> Any:
    """Return the share at some numbers of steps: that of the last checkpoint, 0 before all."""
    return np.array([0.0, *shares])[np.searchsorted(steps, at, side="right")]


def _label(axes: Any, title: str) -> None:
    axes.set_title(title)
    axes.set_xscale("log")
    axes.set_xlabel("steps in the world")
    axes.set_ylim(-0.03, 1.05)
    axes.axhline(ENOUGH, color="0.5", linestyle="--", linewidth=0.8)
    axes.grid(color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.margins(x=0)
    axes.spines[["top", "right"]].set_visible(False)
