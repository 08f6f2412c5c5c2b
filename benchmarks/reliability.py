"""What was tried, how often and with what outcome → docs/reliability.md.

Run by `make benchmark NAME=reliability`. Each part has the file that its target writes; a part whose file is not
there yet says so.
"""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reliability.md"
BENCHMARKS = ROOT / "benchmarks"
FAULTS = {
    "kills": "commands killed at a random moment",
    "runs_after_kills": "commands run again after a kill",
    "full_disks": "commands on a disk that fills up",
    "limited_files": "commands that may not write files of that size",
    "read_only_folders": "commands in a folder that cannot be written to",
    "two_writers": "two commands that write the same file at once",
    "changing_files": "commands on files that change while they are read",
    "interrupts": "commands interrupted by Ctrl-C",
}
"""Faults that `benchmarks/faults.py` counts, and what they are called here."""

BEGIN, END = "<!-- counted: begin -->", "<!-- counted: end -->"


def _held(name: str) -> Any:
    path = BENCHMARKS / name
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


def _none(what: str, command: str) -> str:
    return _row(what, "not yet", "", f"`{command}`")


def summary() -> list[str]:
    """Return one row for each thing that was tried."""
    rows = []
    fuzzed = _held("fuzz.json")
    if fuzzed is None:
        rows.append(_none("damaged files and odd arguments", "make fuzz"))
    else:
        kinds = list(fuzzed["outcomes"].values())
        inputs = sum(sum(one.values()) for one in kinds)
        failed = sum(one.get("failed", 0) for one in kinds)
        fixed = sum(one.get("fixed", 0) for one in kinds)
        told = "a result, or a `ResolventError`, each time"
        wrong = [f"{failed:,} failed"] if failed else []
        wrong += [f"{fixed:,} failed then and are fixed since"] if fixed else []
        if wrong:
            told = f"{', '.join(wrong)}; the others gave a result or a `ResolventError`"
        time = _hours(fuzzed["cpu_seconds"])
        rows.append(
            _row(
                f"damaged files and odd arguments, for {len(kinds)} readers and calls",
                f"{inputs:,} in {time} of processor time",
                told,
                "`make fuzz`",
            )
        )
    machines = _held("small_machines.json")
    if machines is None:
        rows.append(_none("random small machines", "make benchmark NAME=small_machines"))
    else:
        failed = len(machines["failures"])
        rows.append(
            _row(
                "random small machines: learned, saved, loaded, replayed, held against all laws",
                f"{machines['machines']:,} in {_hours(machines['cpu_seconds'])} of processor time",
                f"{failed:,} failures" if failed else "every law held",
                "`make benchmark NAME=small_machines`",
            )
        )
    return rows + _faults(_held("faults.json") or {}) + [_interrupts(), _solves()]


def _faults(found: dict[str, Any]) -> list[str]:
    """Return a row for each fault that was tried for real: its total stands under its name."""
    rows = []
    for fault, what in FAULTS.items():
        if fault not in found:
            rows.append(_none(what, "make benchmark NAME=faults"))
            continue
        kinds = found.get("outcomes", {}).get(fault, {})
        wrong = [one for one in found.get("wrong", []) if fault in str(one)]
        said = ", ".join(f"{name}: {times:,}" for name, times in kinds.items())
        told = f"**{len(wrong):,} wrong**; {said}" if wrong else said or "nothing lost"
        rows.append(_row(what, f"{found[fault]:,}", told, "`make benchmark NAME=faults`"))
    return rows


def _interrupts() -> str:
    """Return the row of commands that were interrupted in their whole life, starting included."""
    what, command = "Ctrl-C at any moment from a command's start to its end", "benchmark-interrupts"
    found = _held("interrupts.json")
    if found is None:
        return _none(what, f"make {command}")
    told = ", ".join(f"{name}: {times:,}" for name, times in found["outcomes"].items())
    if wrong := found["wrong"]:
        told = f"**{len(wrong):,} wrong**; {told}"
    often = f"{found['interrupts']:,} of {found['commands']:,} commands"
    return _row(what, often, told, f"`make {command}`")


def _solves() -> str:
    """Return the row of solves that were killed and resumed."""
    what, command = "solves killed at random moments and resumed", "make benchmark NAME=solve_kills"
    found = _held("solve_kills.json")
    if found is None:
        return _none(what, command)
    often = f"{found['solves']:,} with {found['kills']:,} kills and {found['resumes']:,} resumes"
    told = f"{found['same']:,} of {found['solves']:,} ended in the same bytes as without"
    return _row(what, often, told, f"`{command}`")


def fuzzed_targets() -> list[str]:
    """Return one row for each reader and call that was fuzzed."""
    fuzzed = _held("fuzz.json") or {"outcomes": {}}
    rows = []
    for name, kinds in sorted(fuzzed["outcomes"].items()):
        told = [kinds.get(kind, 0) for kind in ("result", "refused", "failed", "fixed")]
        rows.append(_row(f"`{name}`", *(f"{one:,}" for one in (sum(told), *told))))
    return rows


def laws() -> list[str]:
    """Return one row for each law of random small machines."""
    held = (_held("small_machines.json") or {"held": {}})["held"]
    return [_row(law, f"{times:,}") for law, times in held.items()]


def failures(kind: str) -> list[str]:
    """Return what failed and still does ("failures") or no longer ("fixed"), and how to try it."""
    fuzzed = _held("fuzz.json") or {}
    return [
        f"- {place.partition(chr(10))[0]}: {failure['times']:,} times; `{failure['replay'][0]}`"
        for place, failure in sorted(fuzzed.get(kind, {}).items())
    ]


def section() -> str:
    """Return the tables as Markdown."""
    lines = [
        "| tried | how often | outcome | run it |",
        "|---|---:|---|---|",
        *summary(),
    ]
    if targets := fuzzed_targets():
        lines += [
            "",
            "## Readers and calls",
            "",
            "| reader or call | inputs | results | refused | failed | fixed since |",
            "|---|---:|---:|---:|---:|---:|",
            *targets,
        ]
    for kind, said in (("failures", "What fails:"), ("fixed", "What failed and is fixed:")):
        if rows := failures(kind):
            lines += ["", said, "", *rows]
    if rows := laws():
        lines += ["", "## Laws", "", "| law | machines it held for |", "|---|---:|", *rows]
    return "\n".join(lines)


def main() -> None:
    """Write the tables between their marks."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{section()}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
