"""Results → tables as data, beside the paper's figures."""

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from resolvent.paper.experiments import (
    ABLATION,
    ABLATION_TRACES,
    BASELINES,
    BIN,
    GRIDS,
    LEARNERS,
    METHODS,
    OURS,
    PAPER_EPISODES,
    PARTS,
    POLICY,
    POLICY_SETTING,
    STRATEGIES,
)
from resolvent.paper.reproduce import Results

Record = dict[str, Any]
FINISHED: Final = ("found", "no solution")  # status of a run that was neither stopped nor failed
_WIDE = ("wrong on fresh traces", "memory")  # columns that a terminal does not show
_LAST = 4  # number of last bins that count as the end of a learning curve

# --- The paper's figures -------------------------------------------------------------------------

PROCESSOR: Final = "Intel i7-9750H"

PAPER_SECONDS: Final[dict[str, dict[str, str]]] = {
    "3x3": {"rpni": "1.3", "hmm": "104.0", "ilp": "5.3"},
    "4x4": {"rpni": "3.9", "hmm": "> 6,000", "ilp": "≈ 5,500"},
    "5x5": {"rpni": "56.1", "hmm": "time out", "ilp": "time out"},
}
"""Seconds of the comparison, by grid and method."""

MEAN_LENGTHS: Final = {"3x3": 26.7, "4x4": 124.4, "5x5": 257.6}  # steps of a trace, in the paper

PAPER_ABLATION: Final[dict[str, dict[str, str]]] = {
    "low": {
        "full": "7 / 2, 412.2 s",
        "no-supplement": "7 / 218, 26,976.9 s",
        "keep-redundant": "7 / 2, 3,176.2 s",
        "keep-trivial": "> 250 / –, > 172,800 s",
        "keep-both": "– / –, – s",
    },
    "high": {
        "full": "7 / 2, 4,174.6 s",
        "no-supplement": "7 / 15, 4,252.5 s",
        "keep-redundant": "7 / 2, 30,395.8 s",
        "keep-trivial": "8 / 2, 65,728.3 s",
        "keep-both": "– / –, > 172,800 s",
    },
}
"""States of TM / RM and seconds, by number of traces and part."""

# --- Repetitions of a run ------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """The records of one method in one setting, one for each repetition."""

    records: Sequence[Record]

    @classmethod
    def of(cls, records: Iterable[Record], setting: str, method: str) -> "Summary":
        """Select the records of a method in a setting."""
        names = (setting, method)
        selected = (run for run in records if (run["setting"], run["method"]) == names)
        return cls(sorted(selected, key=lambda record: int(record["repetition"])))

    @property
    def finished(self) -> list[Record]:
        """The records of finished runs."""
        return [record for record in self.records if record["status"] in FINISHED]

    @property
    def all_finished(self) -> bool:
        """Whether all runs finished."""
        return bool(self.records) and len(self.finished) == len(self.records)

    def median(self) -> float:
        """Return the median seconds of finished runs."""
        return float(statistics.median(map(seconds_of, self.finished)))

    def seconds(self) -> str:
        """Write the median and range of the seconds, or the failure."""
        texts = []
        if seconds := sorted(map(seconds_of, self.finished)):
            text = number(statistics.median(seconds))
            if len(seconds) > 1:
                text += f" ({number(seconds[0])}–{number(seconds[-1])})"
            texts.append(text)
        statuses = dict.fromkeys(str(record["status"]) for record in self.records)
        for status in (status for status in statuses if status not in FINISHED):
            failed = [record for record in self.records if record["status"] == status]
            text = status
            if status == "time limit":
                text = f"> {min(map(seconds_of, failed)):,.0f}"
            elif status == "memory limit":
                peak = max(record.get("memory_mb") or 0 for record in failed)
                text = f"memory limit ({peak:,.0f} MB)"
            texts.append(text if len(failed) == len(self.records) else f"{text} ({len(failed)}×)")
        return ", ".join(texts)

    def times(self, ours: "Summary") -> str:
        """Write the ratio of the median seconds to ours, or a lower bound."""
        limits = [seconds_of(run) for run in self.records if run["status"] == "time limit"]
        seconds = sorted([*limits, *map(seconds_of, self.finished)])
        if not ours.all_finished or len(seconds) < len(self.records):
            return "–"
        bound = "> " if limits and seconds[len(seconds) // 2] >= min(limits) else ""
        return bound + number(statistics.median(seconds) / ours.median())

    def states(self, name: str = "states") -> str:
        """Write the number of states, or its range."""
        numbers = [record[name] for record in self.records if record.get(name) is not None]
        if not numbers:
            return "–"
        return str(numbers[0]) if len(set(numbers)) == 1 else f"{min(numbers)}–{max(numbers)}"

    def correctness(self) -> str:
        """Write how results compare with the truth, with counts if repetitions differ."""
        counts = Counter(run["correctness"] for run in self.records if "correctness" in run)
        if not counts:
            return "–"
        if counts.total() == len(self.records) and len(counts) == 1:
            return str(next(iter(counts)))
        return ", ".join(f"{text} ({count}×)" for text, count in counts.most_common())

    def wrong(self, field: str, of: str) -> str:
        """Write the share of wrong outputs, averaged over the repetitions."""
        shares = [run[field]["wrong"] / run[field][of] for run in self.records if run.get(field)]
        return small_percent(statistics.mean(shares)) if shares else "–"

    def memory(self) -> str:
        """Write the largest peak of memory."""
        peaks = [record["memory_mb"] for record in self.records if record.get("memory_mb")]
        return f"{max(peaks):,.0f} MB" if peaks else "–"

    def last_return(self) -> str:
        """Write the last returns of the paper's schedule, and the maximum."""
        ends = [statistics.mean(record["returns"][-_LAST:]) for record in self.finished]
        text = f"{statistics.mean(ends):.2f} ± {statistics.pstdev(ends):.2f}"
        return f"{text} of {self.finished[0]['largest_return']:.2f}"

    def value_after(self, episode: int) -> str:
        """Write the value of learned policies after a number of episodes."""
        by_seed = map(policy_values, self.finished)
        values = [by_episode[episode] for by_episode in by_seed if episode in by_episode]
        if not values:
            return "–"
        return f"{statistics.mean(values):.1%} ± {statistics.pstdev(values):.1%}"

    def first_within(self, share: float) -> str:
        """Write the first episode at which policies were within a share of the optimum."""
        first = [
            next((at for at, value in policy_values(record).items() if value >= share), None)
            for record in self.finished
        ]
        reached = [episode for episode in first if episode is not None]
        if not reached:
            return "never"
        text = f"{statistics.mean(reached):,.0f}"
        return text if len(reached) == len(first) else f"{text} ({len(reached)} of {len(first)})"


def seconds_of(record: Record) -> float:
    """Return the CPU seconds, or the wall-clock seconds if they are missing."""
    name = "processor_seconds" if "processor_seconds" in record else "seconds"
    return float(record.get(name, 0.0))


def policy_values(record: Record) -> dict[int, float]:
    """Return the values of a learner's policy as shares of the optimum, by episode."""
    policy = record["policy"]
    values = (value / record["optimum"] for value in policy["value"])
    return dict(zip(policy["episode"], values, strict=True))


def number(value: float) -> str:
    """Write seconds with two significant digits, or without decimals from 10."""
    if value >= 10:
        return f"{value:,.0f}"
    if value >= 1:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def small_percent(share: float) -> str:
    """Write a share; a small one is never written as 0."""
    if not share:
        return "0"
    return "< 0.01%" if share < 0.0001 else f"{share:.2%}"


# --- Tables --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """A title, a note, a header and rows; all columns but the first are right-aligned."""

    title: str
    note: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def brief(self) -> list[tuple[str, ...]]:
        """Return header and rows, with only the columns that fit into a terminal."""
        kept = [column for column, name in enumerate(self.header) if name not in _WIDE]
        return [tuple(row[column] for column in kept) for row in (self.header, *self.rows)]

    def markdown(self) -> str:
        """Write it as Markdown."""
        lines = [f"| {' | '.join(row)} |" for row in (self.header, *self.rows)]
        lines.insert(1, "|---|" + "---:|" * (len(self.header) - 1))
        return "\n".join([f"### {self.title}", "", self.note, "", *lines])


def tables(results: Results) -> Iterator[Table]:
    """Yield the tables of all experiments with results."""
    of_grids, of_parts = results.of(BASELINES), results.of(ABLATION)
    for setting in GRIDS:
        if any(record["setting"] == setting for record in of_grids):
            yield baseline_table(of_grids, setting)
    for setting in ABLATION_TRACES:
        if any(record["setting"] == setting for record in of_parts):
            yield ablation_table(of_parts, setting)
    if records := results.of(POLICY):
        yield policy_table(records)


def baseline_table(records: list[Record], setting: str) -> Table:
    """Compare the methods on one grid."""
    ours = Summary.of(records, setting, OURS)
    rows = []
    for name, method in METHODS.items():
        summary = Summary.of(records, setting, name)
        if summary.records:
            row = (
                method.title,
                summary.seconds(),
                summary.times(ours) if name != OURS else "1",
                summary.states(),
                summary.correctness(),
                summary.wrong("fresh", "steps"),
                summary.memory(),
                PAPER_SECONDS[setting].get(name, ""),
            )
            rows.append(row)
    here = [record for record in records if record["setting"] == setting and "steps" in record]
    steps = {record["repetition"]: record["steps"] / record["traces"] for record in here}
    length = f", {statistics.mean(steps.values()):.1f} steps long on average" if steps else ""
    return Table(
        f"{setting.replace('x', '×')} grid, {GRIDS[setting][1]:,} traces",
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
    )


def ablation_table(records: list[Record], setting: str) -> Table:
    """Return one row for each part of the pipeline, and one column for each strategy."""
    used = [
        strategy
        for strategy in STRATEGIES
        if any(record["method"].endswith(f"--{strategy}") for record in records)
    ]
    rows = []
    for part, (title, _) in PARTS.items():
        cells = [Summary.of(records, setting, f"{part}--{strategy}") for strategy in used]
        rows.append((title, *map(_ablation_cell, cells), PAPER_ABLATION[setting][part]))
    return Table(
        f"Ablation, {ABLATION_TRACES[setting]:,} traces",
        f"{_repetitions(records, setting)}. States of TM / RM, seconds, and the share of all "
        f"outputs in the world that are wrong.",
        ("", *used, "the paper"),
        tuple(rows),
    )


def policy_table(records: list[Record]) -> Table:
    """Return the returns of learners, as a share of the optimum."""
    last = max(record.get("episodes", 0) for record in records)
    rows = []
    for name, learner in LEARNERS.items():
        summary = Summary.of(records, POLICY_SETTING, name)
        if summary.finished:
            rows.append(
                (
                    learner.title,
                    summary.last_return(),
                    summary.value_after(PAPER_EPISODES),
                    summary.value_after(last),
                    summary.first_within(0.99),
                    number(summary.median()),
                )
            )
    seeds = len({record["repetition"] for record in records})
    return Table(
        "What is learned in the 25×25 world",
        f"{seeds} seeds, mean ± standard deviation. *Return* is the undiscounted return of "
        f"episodes during learning, which is what the paper plots, beside its maximum. *Value* is "
        f"that of the greedy policy: its exact discounted return over all starts, as a share of "
        f"the optimum.",
        (
            "observed by the learner",
            f"return, {_LAST * BIN} episodes to {PAPER_EPISODES:,}",
            f"value after {PAPER_EPISODES:,} episodes",
            f"value after {last:,}",
            "episodes until within 1%",
            "seconds",
        ),
        tuple(rows),
    )


def _repetitions(records: list[Record], setting: str) -> str:
    count = len({record["repetition"] for record in records if record["setting"] == setting})
    return "One repetition" if count == 1 else f"Median (range) of {count} repetitions"


def _ablation_cell(summary: Summary) -> str:
    if not summary.records:
        return "–"
    if not summary.finished:
        return f"{summary.seconds()} s"
    states = f"{summary.states('tm_states')} / {summary.states()}"
    return f"{states}, {summary.seconds()} s, {summary.wrong('reachable', 'queries')}"
