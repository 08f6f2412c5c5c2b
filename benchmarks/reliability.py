"""Write the tables of docs/reliability.md from the counts of tests and benchmarks.

Each test has a file of counts, which its command writes; a test without one is marked "not yet".
"""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "reliability.md"
FAULTS = {
    "kills": "commands killed at a random moment",
    "runs_after_kills": "commands run again after a kill",
    "full_disks": "commands on a disk that fills up",
    "limited_files": "commands with a limit on the size of files",
    "read_only_folders": "commands in a read-only folder",
    "two_writers": "two commands that write the same file at the same time",
    "changing_files": "commands on files that change while they are read",
}
"""Names of the faults that `benchmarks/faults.py` counts."""

BEGIN, END = "<!-- counted: begin -->", "<!-- counted: end -->"


def counts_of(name: str) -> Any:
    """Return the counts of a benchmark, or None if there are none."""
    path = HERE / name
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def row(*cells: object) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def duration(seconds: float) -> str:
    """Return CPU seconds as hours or minutes."""
    hours = f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"
    return f"{hours} of CPU time"


def outcomes(counts: dict[str, int], wrong: int = 0) -> str:
    """Return the number of each outcome, wrong ones first."""
    text = ", ".join(f"{name}: {number:,}" for name, number in counts.items())
    return f"**{wrong:,} wrong**; {text}" if wrong else text or "nothing lost"


def summary() -> list[str]:
    """Return one row for each kind of test."""
    rows = [_fuzzing(), _small_machines()]
    faults = counts_of("faults.json") or {}
    for fault, test in FAULTS.items():
        wrong = sum(fault in str(problem) for problem in faults.get("wrong", []))
        outcome = outcomes(faults.get("outcomes", {}).get(fault, {}), wrong)
        number = f"{faults[fault]:,}" if fault in faults else None
        rows.append(_test(test, number, outcome, "make benchmark NAME=faults"))
    return [*rows, _interrupts(), _solve_kills()]


def _test(test: str, number: str | None, outcome: str, command: str) -> str:
    if number is None:
        return row(test, "not yet", "", f"`{command}`")
    return row(test, number, outcome, f"`{command}`")


def _fuzzing() -> str:
    test, command = "damaged files and odd arguments", "make fuzz"
    counts = counts_of("fuzz.json")
    if counts is None:
        return _test(test, None, "", command)
    targets = list(counts["outcomes"].values())
    inputs = sum(sum(target.values()) for target in targets)
    failed, fixed = (sum(target.get(kind, 0) for target in targets) for kind in ("failed", "fixed"))
    outcome = "a result, or a `ResolventError`, each time"
    wrong = [f"{failed:,} failed"] if failed else []
    wrong += [f"{fixed:,} failed then and are fixed since"] if fixed else []
    if wrong:
        outcome = f"{', '.join(wrong)}; the others gave a result or a `ResolventError`"
    number = f"{inputs:,} in {duration(counts['cpu_seconds'])}"
    return _test(f"{test}, for {len(targets)} readers and calls", number, outcome, command)


def _small_machines() -> str:
    test = "random small machines: inferred, saved, loaded, replayed, compared with all laws"
    counts = counts_of("small_machines.json")
    number, outcome = None, ""
    if counts is not None:
        number = f"{counts['machines']:,} in {duration(counts['cpu_seconds'])}"
        failures = len(counts["failures"])
        outcome = f"{failures:,} failures" if failures else "every law held"
    return _test(test, number, outcome, "make benchmark NAME=small_machines")


def _interrupts() -> str:
    test = "Ctrl-C at any moment from a command's start to its end"
    counts = counts_of("interrupts.json")
    number, outcome = None, ""
    if counts is not None:
        number = f"{counts['interrupts']:,} of {counts['commands']:,} commands"
        outcome = outcomes(counts["outcomes"], len(counts["wrong"]))
    return _test(test, number, outcome, "make benchmark NAME=interrupts")


def _solve_kills() -> str:
    test = "solves killed at random moments and resumed"
    counts = counts_of("solve_kills.json")
    number, outcome = None, ""
    if counts is not None:
        number = f"{counts['solves']:,} with {counts['kills']:,} kills"
        number += f" and {counts['resumes']:,} resumes"
        outcome = f"{counts['same']:,} of {counts['solves']:,} ended in the same bytes as without"
    return _test(test, number, outcome, "make benchmark NAME=solve_kills")


def fuzzed_targets() -> list[str]:
    """Return one row for each reader and call that was fuzzed."""
    rows = []
    for name, kinds in sorted((counts_of("fuzz.json") or {"outcomes": {}})["outcomes"].items()):
        numbers = [kinds.get(kind, 0) for kind in ("result", "refused", "failed", "fixed")]
        rows.append(row(f"`{name}`", *(f"{number:,}" for number in (sum(numbers), *numbers))))
    return rows


def laws() -> list[str]:
    """Return one row for each law of random small machines."""
    held = (counts_of("small_machines.json") or {"held": {}})["held"]
    return [row(law, f"{times:,}") for law, times in held.items()]


def failures(kind: str) -> list[str]:
    """Return the failures that are open ("failures") or fixed ("fixed"), with their commands."""
    return [
        f"- {place.partition(chr(10))[0]}: {failure['times']:,} times; `{failure['replay'][0]}`"
        for place, failure in sorted((counts_of("fuzz.json") or {}).get(kind, {}).items())
    ]


def section() -> str:
    """Return the tables as Markdown."""
    lines = ["| test | number | outcome | command |", "|---|---:|---|---|", *summary()]
    if targets := fuzzed_targets():
        header = "| reader or call | inputs | results | refused | failed | fixed since |"
        lines += ["", "## Readers and calls", "", header, "|---|---:|---:|---:|---:|---:|"]
        lines += targets
    for kind, title in (("failures", "What fails:"), ("fixed", "What failed and is fixed:")):
        if rows := failures(kind):
            lines += ["", title, "", *rows]
    if rows := laws():
        lines += ["", "## Laws", "", "| law | machines it held for |", "|---|---:|", *rows]
    return "\n".join(lines)


def main() -> None:
    """Write the tables between their marks."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{section()}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
