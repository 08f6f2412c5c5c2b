"""Two checkouts of the project → ratios of the CPU time of one benchmark, measured in turns.

Each checkout runs its own script with its own interpreter, so the other one may be of any age that
has a script of that name. Figures printed in rows of the same name are compared as well.
"""

import os
import re
import statistics
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")


class Run(NamedTuple):
    """CPU seconds with those of child processes, seconds, and what was printed."""

    cpu: float
    seconds: float
    output: str


def run(checkout: Path, script: str, arguments: list[str]) -> Run:
    """Run a checkout's own benchmark with its own interpreter."""
    command = [checkout / ".venv/bin/python", checkout / "benchmarks" / script, *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    began = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=checkout, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout as stream:
        output = stream.read()
    _, status, usage = os.wait4(process.pid, 0)  # with the processes that it has waited for
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{script} failed in {checkout}")
    return Run(usage.ru_utime + usage.ru_stime, time.perf_counter() - began, output)


def figures(output: str) -> dict[str, list[float]]:
    r"""Return the numbers of each printed row, by the text before the first of them.

    Rows of the same name are told apart by the heading above them, a line between empty ones.

    >>> figures("native   0.25 s (0.2 to 0.3)\nonly words")
    {'native': [0.25, 0.2, 0.3]}
    """
    rows: dict[str, list[float]] = {}
    lines, heading = ["", *output.splitlines(), ""], ""
    for before, line, after in zip(lines, lines[1:], lines[2:], strict=False):
        name = " ".join(NUMBER.split(line, maxsplit=1)[0].split())
        numbers = NUMBER.findall(line)
        if name and numbers:
            if name in rows:
                name = f"{name}, {heading}"
            rows[name] = [float(number.replace(",", "")) for number in numbers]
        elif line and not before and not after:
            heading = line
    return rows


def compare(script: str, arguments: list[str], new: Path, old: Path, rounds: int) -> int:
    """Run a benchmark in turns in two checkouts, and print the ratios of new to old."""
    for checkout in (new, old):
        if not (checkout / ".venv/bin/python").exists():
            raise SystemExit(f"{checkout} has no .venv: run `make test` or `make demo` there first")
    pairs: list[tuple[Run, Run]] = []
    for number in range(rounds):
        order = (new, old) if number % 2 else (old, new)
        runs = {checkout: run(checkout, script, arguments) for checkout in order}
        pairs.append((runs[new], runs[old]))
        here, there = pairs[-1]
        print(f"round {number + 1}: {here.cpu:.2f} and {there.cpu:.2f} CPU s", flush=True)
    ratios = sorted(here.cpu / there.cpu for here, there in pairs)
    print(
        f"\n{script}, new / old: {statistics.median(ratios):.3f} of the CPU time "
        f"({ratios[0]:.3f} to {ratios[-1]:.3f}), least {least(pairs):.3f}"
    )
    tables = [[figures(one.output) for one in runs] for runs in zip(*pairs, strict=True)]
    print(f"\n{'medians of the printed rows':<44}{'new':>10}{'old':>10}  ratio of each figure")
    tables = [[figures(single.output) for single in runs] for runs in zip(*pairs, strict=True)]
    for name in tables[0][0]:
        rows = [[table.get(name, []) for table in side] for side in tables]
        lengths = {len(row) for side in rows for row in side}
        if len(lengths) == 1 and 0 not in lengths:  # printed in all runs of both
            here, there = (list(map(statistics.median, zip(*side, strict=True))) for side in rows)
            ratios = [a / b if b else 1.0 for a, b in zip(here, there, strict=True)]
            shares = " ".join(f"{ratio:6.2f}" for ratio in ratios)
            print(f"{name[:43]:<44}{here[0]:>10,.4g}{there[0]:>10,.4g}  {shares}")
    return 0


def least(pairs: list[tuple[Run, Run]]) -> float:
    """Return the ratio of the least CPU times, which other processes disturb least."""
    return min(here.cpu for here, _ in pairs) / min(there.cpu for _, there in pairs)
