"""Repetitions of a run → one figure for tables: a median and a range, or why there is none."""

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
        picked = (one for one in records if (one["setting"], one["method"]) == (setting, method))
        return cls(sorted(picked, key=lambda one: int(one["repetition"])))

    @property
    def finished(self) -> list[Record]:
        """Those that came to an end by themselves."""
        return [one for one in self.records if one["status"] in ("found", "no solution")]

    @property
    def all_finished(self) -> bool:
        """Whether all did."""
        return bool(self.records) and len(self.finished) == len(self.records)

    def median(self) -> float:
        """Return the median of the seconds of those that finished."""
        return float(statistics.median(taken(one) for one in self.finished))

    def seconds(self) -> str:
        """Write how long it took, or how it failed.

        >>> Summary([{"status": "found", "seconds": n / 4} for n in (1, 2, 3)]).seconds()
        '0.50 (0.25–0.75)'
        >>> Summary([{"status": "time limit", "seconds": 20.1}]).seconds()
        '> 20'
        """
        if not self.records:
            return ""
        texts = []
        if done := [taken(one) for one in self.finished]:
            texts.append(spread(done))
        for status in dict.fromkeys(one["status"] for one in self.records):
            failed = [one for one in self.records if one["status"] == status]
            if status in ("found", "no solution"):
                continue
            text = str(status)
            if status == "time limit":
                text = f"> {min(taken(one) for one in failed):,.0f}"
            elif status == "memory limit":
                text = f"memory limit ({max(one.get('memory_mb') or 0 for one in failed):,.0f} MB)"
            texts.append(text if len(failed) == len(self.records) else f"{text} ({len(failed)}×)")
        return ", ".join(texts)

    def states(self, name: str = "states") -> str:
        """Write a number of states, or the range of it.

        >>> Summary([{"states": 9}, {"states": 4}, {"status": "error"}]).states()
        '4–9'
        """
        found = [one[name] for one in self.records if one.get(name) is not None]
        if not found:
            return "–"
        return str(found[0]) if len(set(found)) == 1 else f"{min(found)}–{max(found)}"

    def verdict(self) -> str:
        """Write what the comparison with the truth says, and how often if not always the same."""
        found = Counter(one["verdict"] for one in self.records if "verdict" in one)
        if not found:
            return "–"
        if found.total() == len(self.records) and len(found) == 1:
            return str(next(iter(found)))
        return ", ".join(f"{word} ({count}×)" for word, count in found.most_common())

    def wrong(self, field: str, of: str) -> str:
        """Write which share of answers is wrong, on average over the repetitions."""
        found = [one[field]["wrong"] / one[field][of] for one in self.records if one.get(field)]
        return percent(statistics.mean(found)) if found else "–"


def taken(record: Record) -> float:
    """Return the seconds of the processor, or those on the clock where the system tells no others.

    >>> taken({"seconds": 9.0, "processor_seconds": 4.0}), taken({"seconds": 9.0}), taken({})
    (4.0, 9.0, 0.0)
    """
    name = "processor_seconds" if "processor_seconds" in record else "seconds"
    return float(record.get(name, 0.0))


def spread(values: Sequence[float]) -> str:
    """Write the median and, of several, the range."""
    middle = number(statistics.median(values))
    if len(values) == 1:
        return middle
    return f"{middle} ({number(min(values))}–{number(max(values))})"


def number(value: float) -> str:
    """Write seconds with two digits that count, or all before the point.

    >>> number(0.01234), number(1.26), number(4174.6)
    ('0.012', '1.3', '4,175')
    """
    if value >= 10:
        return f"{value:,.0f}"
    if value >= 1:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def percent(share: float) -> str:
    """Write a share; what is not nothing does not look like it.

    >>> percent(0.0), percent(0.00001), percent(0.125)
    ('0', '< 0.01%', '12.50%')
    """
    if not share:
        return "0"
    return "< 0.01%" if share < 0.0001 else f"{share:.2%}"
