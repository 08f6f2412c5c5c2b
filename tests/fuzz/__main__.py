"""Fuzz all readers and public calls for a while, or try one input again.

Run with `PYTHONPATH=tests python -m fuzz [--seconds N] [--seed S] [--target NAME]`; with
`--number N` one input of a target is tried, and with `--files FOLDER` what lies in a folder.
"""

import argparse
import tempfile
from pathlib import Path

from fuzz.running import SECONDS, Counts, few, limit, run, timed
from fuzz.targets import Reader, targets
from fuzz.trying import Outcome, attempt, attempt_files

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Fuzz, or try one input again."""
    parser = argparse.ArgumentParser(prog="fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=3600.0, help="on the clock")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--target", action="append", help="those alone; may be repeated")
    parser.add_argument("--inputs", type=int, help="so many of each target, one after another")
    parser.add_argument("--no-limits", action="store_true", help="for sanitizers, who need more")
    parser.add_argument("--number", type=int, help="try this input of one target again")
    parser.add_argument("--files", type=Path, help="try the files of this folder with one target")
    parser.add_argument("--counts", type=Path, default=ROOT / "benchmarks" / "fuzz.json")
    parser.add_argument("--failing", type=Path, default=ROOT / "build" / "fuzz")
    options = parser.parse_args()
    known = targets()
    names = options.target or list(known)
    if unknown := set(names) - set(known):
        parser.error(f"no target {', '.join(sorted(unknown))}: there are {', '.join(known)}")
    if options.number is not None or options.files is not None:
        if len(names) != 1:
            parser.error("name one target with --target")
        told(_again(names[0], options.seed, options.number, options.files))
        return
    if options.inputs is not None:
        counts = few(names, options.seed, options.inputs, limited=not options.no_limits)
        said(counts)
        raise SystemExit(1 if counts.failed else 0)
    counts = run(
        names, options.seed, options.seconds, options.processes, options.counts, options.failing
    )
    said(counts)
    if counts.failed:
        raise SystemExit(1)


def _again(name: str, seed: int, number: int | None, files: Path | None) -> Outcome:
    target = targets()[name]
    with tempfile.TemporaryDirectory() as folder:
        limit()
        timed(30 + SECONDS)
        if files is None:
            return attempt(target, seed, number or 0, Path(folder))
        if not isinstance(target, Reader):
            raise SystemExit(f"{name} is a call and reads no files")
        found = {str(one.relative_to(files)): one for one in files.rglob("*") if one.is_file()}
        given = {name: one.read_bytes() for name, one in found.items()}
        return attempt_files(target, given, Path(folder))


def told(outcome: Outcome) -> None:
    """Print how one input ended."""
    print(outcome.kind, outcome.where)
    print(outcome.text)
    if outcome.kind == "failed":
        raise SystemExit(1)


def said(counts: Counts) -> None:
    """Print what was tried, over all runs, and how to try again what failed."""
    print(f"{'target':<26}{'inputs':>12}{'results':>12}{'refused':>12}{'failed':>9}")
    for name, kinds in sorted(counts.outcomes.items()):
        row = [sum(kinds.values()), *(kinds.get(one, 0) for one in ("result", "refused", "failed"))]
        print(f"{name:<26}{row[0]:>12,}{row[1]:>12,}{row[2]:>12,}{row[3]:>9,}")
    print(f"{counts.inputs:,} inputs in {counts.cpu_seconds:,.0f} CPU seconds over all runs")
    for where, known in sorted(counts.failures.items()):
        print(f"{where}: {known['times']} times; {known['replay'][0]}")
    for where in sorted(counts.fixed):
        print(f"{where}: failed once, and no longer does")


if __name__ == "__main__":
    main()
