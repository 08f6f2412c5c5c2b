"""Repetitions of a run → one figure for tables: a median and a range, or a failure."""

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Record = dict[str, Any]


@dataclass(frozen=True)
class Summary:
    """The records of one method in one setting, one for each repetition."""

    records: Sequence[Record]

    @classmethod
    def of(cls, records: Iterable[Record], setting: str, method: str) -> "Summary":
        """Pick the records of a method in a setting."""
        picked = (
            record
            for record in records
            if (record["setting"], record["method"]) == (setting, method)
        )
        return cls(sorted(picked, key=lambda record: int(record["repetition"])))

    @property
    def finished(self) -> list[Record]:
        """The records of finished runs."""
        return [record for record in self.records if record["status"] in ("found", "no solution")]

    @property
    def all_finished(self) -> bool:
        """Whether all runs finished."""
        return bool(self.records) and len(self.finished) == len(self.records)

    def median(self) -> float:
        """Return the median seconds of finished runs."""
        return float(statistics.median(seconds_of(record) for record in self.finished))

    def seconds(self) -> str:
        """Write the seconds, or the failure.

        >>> Summary([{"status": "found", "seconds": n / 4} for n in (1, 2, 3)]).seconds()
        '0.50 (0.25–0.75)'
        >>> Summary([{"status": "time limit", "seconds": 20.1}]).seconds()
        '> 20'
        """
        if not self.records:
            return ""
        texts = []
        if done := [seconds_of(record) for record in self.finished]:
            texts.append(spread(done))
        for status in dict.fromkeys(record["status"] for record in self.records):
            failed = [record for record in self.records if record["status"] == status]
            if status in ("found", "no solution"):
                continue
            text = str(status)
            if status == "time limit":
                text = f"> {min(seconds_of(record) for record in failed):,.0f}"
            elif status == "memory limit":
                peak = max(record.get("memory_mb") or 0 for record in failed)
                text = f"memory limit ({peak:,.0f} MB)"
            texts.append(text if len(failed) == len(self.records) else f"{text} ({len(failed)}×)")
        return ", ".join(texts)

    def states(self, name: str = "states") -> str:
        """Write the number of states, or its range.

        >>> Summary([{"states": 9}, {"states": 4}, {"status": "error"}]).states()
        '4–9'
        """
        numbers = [record[name] for record in self.records if record.get(name) is not None]
        if not numbers:
            return "–"
        return str(numbers[0]) if len(set(numbers)) == 1 else f"{min(numbers)}–{max(numbers)}"

    def verdict(self) -> str:
        """Write the verdict, with counts if there are several."""
        counts = Counter(record["verdict"] for record in self.records if "verdict" in record)
        if not counts:
            return "–"
        if counts.total() == len(self.records) and len(counts) == 1:
            return str(next(iter(counts)))
        return ", ".join(f"{word} ({count}×)" for word, count in counts.most_common())

    def wrong(self, field: str, of: str) -> str:
        """Write the share of wrong answers, averaged over the repetitions."""
        fractions = [
            record[field]["wrong"] / record[field][of]
            for record in self.records
            if record.get(field)
        ]
        return percent(statistics.mean(fractions)) if fractions else "–"


def seconds_of(record: Record) -> float:
    """Return the processor seconds, or the wall-clock seconds if they are missing.

    >>> seconds_of({"seconds": 9.0, "processor_seconds": 4.0}), seconds_of({"seconds": 9.0})
    (4.0, 9.0)
    """
    name = "processor_seconds" if "processor_seconds" in record else "seconds"
    return float(record.get(name, 0.0))


def spread(values: Sequence[float]) -> str:
    """Write the median and, of several values, the range."""
    middle = number(statistics.median(values))
    if len(values) == 1:
        return middle
    return f"{middle} ({number(min(values))}–{number(max(values))})"


def number(value: float) -> str:
    """Write seconds with two significant digits, or without decimals from 10.

    >>> number(0.01234), number(1.26), number(4174.6)
    ('0.012', '1.3', '4,175')
    """
    if value >= 10:
        return f"{value:,.0f}"
    if value >= 1:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def percent(share: float) -> str:
    """Write a share; a small one is never written as 0.

    >>> percent(0.0), percent(0.00001), percent(0.125)
    ('0', '< 0.01%', '12.50%')
    """
    if not share:
        return "0"
    return "< 0.01%" if share < 0.0001 else f"{share:.2%}"
