"""Results → figures: the seconds of each method, and the learning curves; PNG or SVG."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from resolvent._util.files import atomic_write
from resolvent.paper import tables as paper
from resolvent.paper.experiments import comparison, policy
from resolvent.paper.experiments.methods import METHODS
from resolvent.paper.store import Results
from resolvent.paper.summary import Summary, seconds_of
from resolvent.paper.tables import shares
from resolvent.viz.curves import import_matplotlib

_GOOD, _BAD, _PAPER = "#0072B2", "#D55E00", "0.45"
_COLOURS = ("#0072B2", "#000000", "#009E73", "#D55E00")
_STYLE = {"svg.hashsalt": "resolvent", "svg.fonttype": "path", "font.size": 9.0}
_NO_METADATA: dict[str, dict[str, None]] = {"svg": {"Date": None}, "png": {"Software": None}}


def draw_baselines(path: Path, results: Results) -> None:
    """Draw the seconds of each method on each grid; runs stopped at a limit are marked."""
    records = results.of(comparison.EXPERIMENT)
    grids = [grid for grid in comparison.GRIDS if any(r["setting"] == grid for r in records)]
    names = [name for name in METHODS if any(r["method"] == name for r in records)]
    with _figure(path, (3.0 + 2.6 * len(grids), 1.4 + 0.32 * len(names))) as figure:
        panels = figure.subplots(1, len(grids), sharey=True, sharex=True, squeeze=False)[0]
        for axes, grid in zip(panels, grids, strict=True):
            for row, name in enumerate(names):
                _draw_method(axes, row, Summary.of(records, grid, name))
                _draw_paper(axes, row, paper.PLOTTED[grid].get(name))
            axes.set_xscale("log")
            axes.set_title(f"{grid.replace('x', '×')}, {comparison.GRIDS[grid][1]:,} traces")
            axes.set_xlabel("seconds of the processor")
            axes.grid(axis="x", color="0.9", linewidth=0.8)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
        panels[0].set_yticks(range(len(names)), [METHODS[name].title for name in names])
        panels[0].set_ylim(len(names) - 0.5, -0.5)
        handles = [
            _handle("o", _GOOD, "finished, with the truth"),
            _handle("o", _BAD, "finished, with something else"),
            _handle(">", "0.2", "stopped at the limit of time or memory", hollow=True),
            _handle("D", _PAPER, "the paper's figure", hollow=True),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)


def draw_policy(path: Path, results: Results) -> None:
    """Draw the rewards of learners while learning, and the worth of their policies."""
    records = [record for record in results.of(policy.EXPERIMENT) if record["status"] == "found"]
    with _figure(path, (10.0, 4.0)) as figure:
        left, right = figure.subplots(1, 2)
        for (name, learner), colour in zip(policy.LEARNERS.items(), _COLOURS, strict=True):
            repetitions = Summary.of(records, policy.SETTING, name).records
            if not repetitions:
                continue
            paid = [np.array(record["returns"]) for record in repetitions]
            episodes = np.arange(1, len(paid[0]) + 1) * policy.BIN
            _draw_band(left, episodes, paid, learner.title, colour)
            worth = [np.array(list(shares(record).values())) for record in repetitions]
            _draw_band(right, np.array(repetitions[0]["worth"]["episode"]), worth, None, colour)
        left.set_title("total reward while learning, as in the paper", fontsize=10)
        left.set_ylabel("total reward (dashed: the most)")
        for most in {record["most"] for record in records}:
            left.axhline(most, color="0.4", linestyle="--", linewidth=1)
            left.set_ylim(-2 * most, 1.15 * most)  # what is below is of no interest
        right.set_title(
            f"exact worth of the greedy policy (dotted: {policy.PAPER_EPISODES:,} episodes)",
            fontsize=10,
        )
        right.set_xscale("log")
        right.set_ylabel("share of the optimum (dashed)")
        right.set_ylim(-0.1, 1.05)
        right.axhline(1.0, color="0.4", linestyle="--", linewidth=1)
        right.axvline(policy.PAPER_EPISODES, color="0.6", linewidth=1, linestyle=":")
        right.xaxis.set_major_formatter("{x:,.0f}")
        for axes in (left, right):
            axes.set_xlabel("episode")
            axes.margins(x=0)
            axes.grid(color="0.9", linewidth=0.8)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside lower center", ncols=4, frameon=False)


@contextmanager
def _figure(path: Path, size: tuple[float, float]) -> Iterator[Any]:
    """Yield a figure to draw into, then write it; the same drawing gives the same SVG."""
    matplotlib = import_matplotlib()
    kind = path.suffix[1:]
    with matplotlib.rc_context(_STYLE):
        figure = importlib.import_module("matplotlib.figure").Figure(
            figsize=size, layout="constrained"
        )
        yield figure
        with atomic_write(path) as file:
            figure.savefig(file, format=kind, dpi=150, metadata=_NO_METADATA[kind])


def _draw_method(axes: Any, row: int, summary: Summary) -> None:
    for record in summary.records:
        seconds = seconds_of(record)
        if record["status"] in ("found", "no solution"):
            colour = _GOOD if record.get("verdict") in ("exact", "true states") else _BAD
            axes.plot(seconds, row, "o", color=colour, markersize=4, alpha=0.5)
        elif record["status"] in ("time limit", "memory limit") and seconds:
            axes.plot(seconds, row, ">", color="0.2", fillstyle="none", markersize=7)
    if summary.all_finished:
        axes.plot(summary.median(), row, "|", color="black", markersize=9)
    elif summary.records and not any(map(seconds_of, summary.records)):
        word = summary.records[0]["status"]
        axes.text(0.02, row, word, transform=axes.get_yaxis_transform(), va="center", color=_BAD)


def _draw_paper(axes: Any, row: int, figure: tuple[float, bool] | None) -> None:
    if figure is None:
        return
    seconds, finished = figure
    axes.plot(seconds, row, "D", color=_PAPER, fillstyle="none", markersize=6)
    if not finished:
        axes.annotate(">", (seconds, row), xytext=(6, -3), textcoords="offset points", color=_PAPER)


def _handle(marker: str, colour: str, text: str, hollow: bool = False) -> Any:
    return importlib.import_module("matplotlib.lines").Line2D(
        [],
        [],
        color=colour,
        marker=marker,
        linestyle="",
        label=text,
        fillstyle="none" if hollow else "full",
        markersize=5,
    )


def _draw_band(axes: Any, x: Any, rows: list[Any], label: str | None, colour: str) -> None:
    values = np.array(rows)
    mean, deviation = values.mean(axis=0), values.std(axis=0)
    axes.plot(x, mean, color=colour, linewidth=1.5, label=label)
    if len(values) > 1:
        band = (mean - deviation, mean + deviation)
        axes.fill_between(x, *band, color=colour, alpha=0.2, linewidth=0)
