"""Results → a page of tables, and figures: PNG or SVG, drawn by matplotlib."""

import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np

from resolvent._util.files import atomic_write
from resolvent.errors import MissingExtra
from resolvent.paper.experiments import (
    BASELINES,
    BIN,
    GRIDS,
    LEARNERS,
    METHODS,
    PAPER_EPISODES,
    POLICY,
    POLICY_SETTING,
)
from resolvent.paper.reproduce import Results
from resolvent.paper.tables import (
    FINISHED,
    PAPER_SECONDS,
    PROCESSOR,
    Summary,
    policy_values,
    seconds_of,
    tables,
)
from resolvent.viz.curves import figure

LEGEND = """\
- *rpni* is the paper's order of merging, *edsm* the one by most evidence, with which our default
  begins. *ILP, all traces* is what the paper ran, *ILP, conflicts* the published loop that adds
  traces as they conflict. *LRM, adapted* does not read the first label, which here does not count.
- *seconds* are CPU seconds of the method alone, in a process of its own on one thread; traces are
  made and results evaluated outside. A figure without a range is of one repetition. `> n` was
  stopped after n seconds, and not repeated if that was the first repetition; its machine is the
  best it had by then.
- *times ours* compares medians; a stopped run counts as its limit.
- *compared with the truth*: world and machine are explored together through everything reachable.
  `exact`: the true machine up to the names of states. `true states`: the true states one to one,
  but some outputs are unseen, or wrong because a query was taken to be redundant. `right, other
  states`: no wrong output, other states. `wrong`: other states, and some reward, end or
  observation is predicted wrongly.
- *wrong on fresh traces*: the share of steps of 1,000 new random traces whose reward, or
  for a pair of machines whose reward or next observation, is predicted wrongly."""


def write_report(folder: Path, results: Results) -> list[Path]:
    """Write README.md and, with matplotlib, the figures beside the results; return the paths."""
    written: list[Path] = []
    no_figures = None
    try:
        for name, draw in ((BASELINES, draw_baselines), (POLICY, draw_policy)):
            for suffix in (".png", ".svg") if results.of(name) else ():
                draw(folder / f"{name}{suffix}", results)
                written.append(folder / f"{name}{suffix}")
    except MissingExtra as error:
        no_figures = str(error)
    page = folder / "README.md"
    with atomic_write(page) as file:
        file.write(markdown(results, no_figures).encode())
    return [page, *written]


def markdown(results: Results, no_figures: str | None = None) -> str:
    """Write the page of tables; `no_figures` is the reason for missing figures."""
    drawn = [name for name in (BASELINES, POLICY) if results.of(name)]
    figures = [f"![{name}]({name}.png)" for name in drawn] if no_figures is None else [no_figures]
    return "\n\n".join(["# The paper's experiments, run again", section(results), *figures]) + "\n"


def section(results: Results) -> str:
    """Write the conditions, and all tables."""
    blocks = [_conditions(results.about), LEGEND]
    blocks += [table.markdown() for table in tables(results)]
    if failures := problems(results):
        blocks += ["### What did not run", "\n".join(f"- {line}" for line in failures)]
    return "\n\n".join(blocks)


def _conditions(about: dict[str, Any]) -> str:
    """Describe how and where results were made."""
    machine, settings = about["machine"], about["settings"]
    packages = ", ".join(
        f"{name} {version}" for name, version in about["packages"].items() if version
    )
    return (
        f"`{about['command']}`, with a limit of {settings['time_limit']:,.0f} s and "
        f"{settings['memory_limit_mb'] / 1024:.0f} GB a run, on {machine['processor']} "
        f"({machine['cores']} cores, {machine['system']}), Python {about['python']}, {packages}. "
        f"Repetition n has the seed n, its fresh traces 1,000,000 + n. "
        f"The paper's figures are from an {PROCESSOR}."
    )


def problems(results: Results) -> list[str]:
    """List failed runs, each reason once for a method, and repetitions with different traces."""
    reasons: dict[str, None] = {}
    digests: dict[str, set[str]] = {}
    for record in results.records:
        setting = f"{record['experiment']}, {record['setting']}"
        if record["status"] in ("error", "not installed"):
            reasons[f"{setting}, {record['method']}: {record['status']}, {record['error']}"] = None
        if "traces_sha256" in record:
            repetition = f"{setting}, repetition {record['repetition']}"
            digests.setdefault(repetition, set()).add(record["traces_sha256"])
    different = [name for name, distinct in digests.items() if len(distinct) > 1]
    return [*reasons, *(f"{name}: methods saw different traces" for name in different)]


# --- Figures -------------------------------------------------------------------------------------

_GOOD, _BAD, _PAPER = "#0072B2", "#D55E00", "0.45"
_COLORS = ("#0072B2", "#000000", "#009E73", "#D55E00")
_FONT_SIZE = 9.0


def draw_baselines(path: Path, results: Results) -> None:
    """Draw the seconds of each method on each grid; runs stopped at a limit are marked."""
    records = results.of(BASELINES)
    grids = [grid for grid in GRIDS if any(r["setting"] == grid for r in records)]
    names = [name for name in METHODS if any(r["method"] == name for r in records)]
    size = (3.0 + 2.6 * len(grids), 1.4 + 0.32 * len(names))
    with figure(path, size, _FONT_SIZE) as drawing:
        panels = drawing.subplots(1, len(grids), sharey=True, sharex=True, squeeze=False)[0]
        for axes, grid in zip(panels, grids, strict=True):
            for row, name in enumerate(names):
                _draw_method(axes, row, Summary.of(records, grid, name))
                _draw_paper(axes, row, PAPER_SECONDS[grid].get(name, ""))
            axes.set_xscale("log")
            axes.set_title(f"{grid.replace('x', '×')}, {GRIDS[grid][1]:,} traces")
            axes.set_xlabel("CPU seconds")
            _style(axes, "x")
        panels[0].set_yticks(range(len(names)), [METHODS[name].title for name in names])
        panels[0].set_ylim(len(names) - 0.5, -0.5)
        handles = [
            _handle("o", _GOOD, "finished, with the truth"),
            _handle("o", _BAD, "finished, with something else"),
            _handle(">", "0.2", "stopped at the limit of time or memory", hollow=True),
            _handle("D", _PAPER, "the paper's figure", hollow=True),
        ]
        drawing.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)


def draw_policy(path: Path, results: Results) -> None:
    """Draw the returns of learners during learning, and the values of their policies."""
    records = [record for record in results.of(POLICY) if record["status"] == "found"]
    with figure(path, (10.0, 4.0), _FONT_SIZE) as drawing:
        left, right = drawing.subplots(1, 2)
        for (name, learner), color in zip(LEARNERS.items(), _COLORS, strict=True):
            repetitions = Summary.of(records, POLICY_SETTING, name).records
            if not repetitions:
                continue
            returns = [np.array(record["returns"]) for record in repetitions]
            episodes = np.arange(1, len(returns[0]) + 1) * BIN
            _draw_band(left, episodes, returns, learner.title, color)
            values = [np.array(list(policy_values(record).values())) for record in repetitions]
            _draw_band(right, np.array(repetitions[0]["policy"]["episode"]), values, None, color)
        left.set_title("return during learning, as in the paper", fontsize=10)
        left.set_ylabel("return (dashed: maximum)")
        for largest in {record["largest_return"] for record in records}:
            left.axhline(largest, color="0.4", linestyle="--", linewidth=1)
            left.set_ylim(-2 * largest, 1.15 * largest)
        right.set_title(
            f"exact value of the greedy policy (dotted: {PAPER_EPISODES:,} episodes)", fontsize=10
        )
        right.set_xscale("log")
        right.set_ylabel("share of the optimum (dashed)")
        right.set_ylim(-0.1, 1.05)
        right.axhline(1.0, color="0.4", linestyle="--", linewidth=1)
        right.axvline(PAPER_EPISODES, color="0.6", linewidth=1, linestyle=":")
        right.xaxis.set_major_formatter("{x:,.0f}")
        for axes in (left, right):
            axes.set_xlabel("episode")
            axes.margins(x=0)
            _style(axes, "both")
        drawing.legend(loc="outside lower center", ncols=4, frameon=False)


def _style(axes: Any, grid: str) -> None:
    axes.grid(axis=grid, color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_method(axes: Any, row: int, summary: Summary) -> None:
    for record in summary.records:
        seconds = seconds_of(record)
        if record["status"] in FINISHED:
            color = _GOOD if record.get("correctness") in ("exact", "true states") else _BAD
            axes.plot(seconds, row, "o", color=color, markersize=4, alpha=0.5)
        elif record["status"] in ("time limit", "memory limit") and seconds:
            axes.plot(seconds, row, ">", color="0.2", fillstyle="none", markersize=7)
    if summary.all_finished:
        axes.plot(summary.median(), row, "|", color="black", markersize=9)
    elif summary.records and not any(map(seconds_of, summary.records)):
        status = summary.records[0]["status"]
        axes.text(0.02, row, status, transform=axes.get_yaxis_transform(), va="center", color=_BAD)


def _draw_paper(axes: Any, row: int, text: str) -> None:
    """Draw the paper's seconds, which may be a lower bound."""
    figure = re.search(r"[\d,.]+", text)
    if figure is None:
        return
    seconds = float(figure[0].replace(",", ""))
    axes.plot(seconds, row, "D", color=_PAPER, fillstyle="none", markersize=6)
    if text.startswith(">"):
        axes.annotate(">", (seconds, row), xytext=(6, -3), textcoords="offset points", color=_PAPER)


def _handle(marker: str, color: str, text: str, hollow: bool = False) -> Any:
    line = importlib.import_module("matplotlib.lines").Line2D
    look = {"marker": marker, "linestyle": "", "markersize": 5}
    return line([], [], color=color, label=text, fillstyle="none" if hollow else "full", **look)


def _draw_band(axes: Any, x: Any, rows: list[Any], label: str | None, color: str) -> None:
    values = np.array(rows)
    mean, deviation = values.mean(axis=0), values.std(axis=0)
    axes.plot(x, mean, color=color, linewidth=1.5, label=label)
    if len(values) > 1:
        band = (mean - deviation, mean + deviation)
        axes.fill_between(x, *band, color=color, alpha=0.2, linewidth=0)
