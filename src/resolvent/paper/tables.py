"""Results → tables as data, beside the paper's figures."""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from resolvent.paper.experiments import ablation, comparison, policy
from resolvent.paper.experiments.methods import METHODS, OURS
from resolvent.paper.store import Results
from resolvent.paper.summary import Record, Summary, number, seconds_of

_LAST = 4
"""Number of last bins that count as the end of a learning curve."""

PARTS = {
    "full": "full pipeline",
    "no-supplement": "without supplement",
    "keep-redundant": "without removal of redundant α",
    "keep-trivial": "without removal of trivial β",
    "keep-both": "without both removals",
}


@dataclass(frozen=True)
class Table:
    """A title, a note, a header and rows; all columns but the first are right-aligned."""

    title: str
    note: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    brief: tuple[int, ...] | None = None
    """The columns that a terminal shows, if not all."""

    def for_terminals(self) -> "Table":
        """Return it with only the columns that fit into a terminal."""
        if self.brief is None:
            return self
        rows = [tuple(row[column] for column in self.brief) for row in (self.header, *self.rows)]
        return Table(self.title, self.note, rows[0], tuple(rows[1:]))

    def markdown(self) -> str:
        """Write it as Markdown."""
        lines = [f"| {' | '.join(row)} |" for row in (self.header, *self.rows)]
        lines.insert(1, "|---|" + "---:|" * (len(self.header) - 1))
        return "\n".join([f"### {self.title}", "", self.note, "", *lines])


def tables(results: Results) -> Iterator[Table]:
    """Yield the tables of all experiments with results."""
    if records := results.of(comparison.EXPERIMENT):
        for setting in comparison.GRIDS:
            if any(record["setting"] == setting for record in records):
                yield baseline_table(records, setting)
    if records := results.of(ablation.EXPERIMENT):
        for setting in ablation.SETTINGS:
            if any(record["setting"] == setting for record in records):
                yield ablation_table(records, setting)
    if records := results.of(policy.EXPERIMENT):
        yield policy_table(records)


def baseline_table(records: list[Record], setting: str) -> Table:
    """Compare the methods on one grid."""
    ours = Summary.of(records, setting, OURS)
    rows = []
    for name, method in METHODS.items():
        summary = Summary.of(records, setting, name)
        if not summary.records:
            continue
        rows.append(
            (
                method.title,
                summary.seconds(),
                _times(summary, ours) if name != OURS else "1",
                summary.states(),
                summary.verdict(),
                summary.wrong("fresh", "steps"),
                _memory(summary),
                SECONDS[setting].get(name, ""),
            )
        )
    here = [record for record in records if _here(record, setting)]
    steps = {record["repetition"]: record["steps"] / record["traces"] for record in here}
    length = f", {statistics.mean(steps.values()):.1f} steps long on average" if steps else ""
    size = setting.replace("x", "×")
    return Table(
        f"{size} grid, {comparison.GRIDS[setting][1]:,} traces",
        f"{_repetitions(records, setting)} of random traces{length} (the paper says "
        f"{MEAN_LENGTHS[setting]}); the same for all methods.",
        (
            "method",
            "seconds",
            "times ours",
            "RM states",
            "compared with the truth",
            "wrong on fresh traces",
            "memory",
            "the paper's seconds",
        ),
        tuple(rows),
        brief=(0, 1, 2, 3, 4, 7),
    )


def ablation_table(records: list[Record], setting: str) -> Table:
    """Return one row for each part of the pipeline, and one column for each strategy."""
    used = [
        strategy
        for strategy in ablation.STRATEGIES
        if any(record["method"].endswith(f"--{strategy}") for record in records)
    ]
    rows = []
    for part, title in PARTS.items():
        cells = [Summary.of(records, setting, f"{part}--{strategy}") for strategy in used]
        texts = [_ablation_cell(cell) for cell in cells]
        rows.append((title, *texts, str(ABLATION[setting][part])))
    return Table(
        f"Ablation, {ablation.SETTINGS[setting]:,} traces",
        f"{_repetitions(records, setting)}. States of TM / RM, seconds, and the share of all "
        f"answers in the world that are wrong.",
        ("", *used, "the paper"),
        tuple(rows),
    )


def policy_table(records: list[Record]) -> Table:
    """Return the returns of learners, as a share of the optimum."""
    last = max(record.get("episodes", 0) for record in records)
    rows = []
    for name, learner in policy.LEARNERS.items():
        summary = Summary.of(records, policy.SETTING, name)
        if not summary.finished:
            continue
        rows.append(
            (
                learner.title,
                _paid(summary),
                _reached(summary, policy.PAPER_EPISODES),
                _reached(summary, last),
                _within(summary, 0.99),
                number(summary.median()),
            )
        )
    seeds = len({record["repetition"] for record in records})
    return Table(
        "What is learned in the 25×25 world",
        f"{seeds} seeds, mean ± standard deviation. *Total reward* is what episodes paid while "
        f"learning, which is what the paper plots, of the most they could. *Worth* is that of the "
        f"greedy policy: its exact discounted return over all starts, as a share of the optimum.",
        (
            "learner sees",
            f"total reward, {_LAST * policy.BIN} episodes to {policy.PAPER_EPISODES:,}",
            f"worth after {policy.PAPER_EPISODES:,} episodes",
            f"worth after {last:,}",
            "episodes until within 1%",
            "seconds",
        ),
        tuple(rows),
    )


def shares(record: Record) -> dict[int, float]:
    """Return the worth of a learner's policy as a share of the optimum, by episode."""
    worth = record["worth"]
    values = (value / record["optimum"] for value in worth["value"])
    return dict(zip(worth["episode"], values, strict=True))


def _here(record: Record, setting: str) -> bool:
    return record["setting"] == setting and "steps" in record


def _repetitions(records: list[Record], setting: str) -> str:
    count = len({record["repetition"] for record in records if record["setting"] == setting})
    return "One repetition" if count == 1 else f"Median (range) of {count} repetitions"


def _times(summary: Summary, ours: Summary) -> str:
    """Write the ratio of the method's median time to ours, or a lower bound."""
    stopped = [seconds_of(record) for record in summary.records if record["status"] == "time limit"]
    seconds = sorted([*stopped, *map(seconds_of, summary.finished)])
    if not ours.all_finished or len(seconds) < len(summary.records):
        return "–"
    bound = "> " if stopped and seconds[len(seconds) // 2] >= min(stopped) else ""
    return bound + number(statistics.median(seconds) / ours.median())


def _memory(summary: Summary) -> str:
    peaks = [record["memory_mb"] for record in summary.records if record.get("memory_mb")]
    return f"{max(peaks):,.0f} MB" if peaks else "–"


def _ablation_cell(summary: Summary) -> str:
    if not summary.records:
        return "–"
    if not summary.finished:
        return f"{summary.seconds()} s"
    states = f"{summary.states('tm_states')} / {summary.states()}"
    return f"{states}, {summary.seconds()} s, {summary.wrong('reachable', 'answers')}"


def _paid(summary: Summary) -> str:
    """Write the reward of the last episodes of the paper's schedule, and the maximum."""
    ends = [statistics.mean(record["returns"][-_LAST:]) for record in summary.finished]
    text = f"{statistics.mean(ends):.2f} ± {statistics.pstdev(ends):.2f}"
    return f"{text} of {summary.finished[0]['most']:.2f}"


def _reached(summary: Summary, episode: int) -> str:
    by_seed = [shares(record).get(episode) for record in summary.finished]
    reached = [share for share in by_seed if share is not None]
    if not reached:
        return "–"
    return f"{statistics.mean(reached):.1%} ± {statistics.pstdev(reached):.1%}"


def _within(summary: Summary, share: float) -> str:
    """Write the first episode at which learners were within a share of the optimum."""
    first = [
        next((episode for episode, reached in shares(record).items() if reached >= share), None)
        for record in summary.finished
    ]
    there = [episode for episode in first if episode is not None]
    if not there:
        return "never"
    text = f"{statistics.mean(there):,.0f}"
    return text if len(there) == len(first) else f"{text} ({len(there)} of {len(first)})"


PROCESSOR: Final = "Intel i7-9750H"

SECONDS: Final[dict[str, dict[str, str]]] = {
    "3x3": {"rpni": "1.3", "hmm-dense": "104.0", "ilp": "5.3"},
    "4x4": {"rpni": "3.9", "hmm-dense": "> 6,000", "ilp": "≈ 5,500"},
    "5x5": {"rpni": "56.1", "hmm-dense": "time out", "ilp": "time out"},
}
"""Of the baseline comparison, by grid and method."""

PLOTTED: Final[dict[str, dict[str, tuple[float, bool]]]] = {
    "3x3": {"rpni": (1.3, True), "hmm-dense": (104.0, True), "ilp": (5.3, True)},
    "4x4": {"rpni": (3.9, True), "hmm-dense": (6_000.0, False), "ilp": (5_500.0, True)},
    "5x5": {"rpni": (56.1, True)},
}
"""The same as numbers: seconds, and whether that was the end or a limit."""

MEAN_LENGTHS: Final = {"3x3": 26.7, "4x4": 124.4, "5x5": 257.6}
"""Steps of a trace, on average, as the paper states them."""


class Cell(NamedTuple):
    """A cell of the ablation table."""

    tm_states: str
    rm_states: str
    seconds: str

    def __str__(self) -> str:
        return f"{self.tm_states} / {self.rm_states}, {self.seconds} s"


ABLATION: Final[dict[str, dict[str, Cell]]] = {
    "low": {
        "full": Cell("7", "2", "412.2"),
        "no-supplement": Cell("7", "218", "26,976.9"),
        "keep-redundant": Cell("7", "2", "3,176.2"),
        "keep-trivial": Cell("> 250", "–", "> 172,800"),
        "keep-both": Cell("–", "–", "–"),
    },
    "high": {
        "full": Cell("7", "2", "4,174.6"),
        "no-supplement": Cell("7", "15", "4,252.5"),
        "keep-redundant": Cell("7", "2", "30,395.8"),
        "keep-trivial": Cell("8", "2", "65,728.3"),
        "keep-both": Cell("–", "–", "> 172,800"),
    },
}
