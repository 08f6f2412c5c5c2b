"""The functions that one inference and one solve pass through, in order of their first call.

A profiler notes each call of a function of the package; a generator is called once. Printed are the number of functions
and of calls, the number of calls from one package into another, and for each package in the
order of first entry the functions that are called there. `--outline` prints the numbers alone.
Only public calls are made, so that `--against` of the runner can compare any two checkouts.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from inspect import CO_GENERATOR
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import gymnasium as gym

import resolvent as rs

ROOT = str(Path(rs.__file__).parent) + "/"
PAGE = Path(__file__).parents[1] / "docs" / "decisions" / "walks.md"
MARK = "<!-- Below: written by `make benchmark NAME=walks ARGS=--page`. -->"


def package_of(code: CodeType) -> str | None:
    """Return the package of a function, or its module where that is not in one."""
    if not code.co_filename.startswith(ROOT):
        return None
    name = code.co_filename[len(ROOT) :].split("/")[0].removesuffix(".py")
    return "resolvent" if name == "__init__" else name


def nearest_package(frame: FrameType | None) -> str | None:
    """Return the package of the caller, or of its caller if that is not a function of ours."""
    while frame is not None:
        package = package_of(frame.f_code)
        if package is not None:
            return package
        frame = frame.f_back
    return None


@dataclass
class Walk:
    """The calls of one run."""

    functions: dict[CodeType, str] = field(default_factory=dict)
    """Each function with its package, in order of first call."""
    calls: int = 0
    crossings: dict[tuple[str, str], int] = field(default_factory=dict)
    """Number of calls from one package into another one, also through other libraries."""

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        """Count a call: this is the profiler."""
        if event != "call":
            return
        package, code = package_of(frame.f_code), frame.f_code
        is_resumed = code.co_flags & CO_GENERATOR and frame.f_lineno != code.co_firstlineno
        if package is None or is_resumed:
            return
        self.calls += 1
        self.functions.setdefault(frame.f_code, package)
        caller = nearest_package(frame.f_back)
        if caller is not None and caller != package:
            self.crossings[caller, package] = self.crossings.get((caller, package), 0) + 1

    def packages(self) -> dict[str, list[CodeType]]:
        """Return the functions of each package, both in order of first call."""
        entered: dict[str, list[CodeType]] = {}
        for code, package in self.functions.items():
            if "<" not in code.co_name:  # no lambdas, comprehensions and module bodies
                entered.setdefault(package, []).append(code)
        return entered


def walk(work: Callable[[], object]) -> Walk:
    """Run some work under the profiler."""
    found = Walk()
    sys.setprofile(found.note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


def infer_file(path: Path) -> None:
    """Infer machines from a file of traces, and save them."""
    rs.infer(rs.read_traces(path)).machines.save(path.with_suffix(".json"))


def solve(env: Any) -> None:
    """Solve an environment by exploration."""
    rs.solve(env, seed=0, budget=2_500)


def summary(run: Walk) -> list[str]:
    """Return the figures of a walk, and its packages in order of first entry."""
    packages = run.packages()
    return [
        f"functions {sum(map(len, packages.values())):,}",
        f"calls {run.calls:,}",
        f"calls into another package {sum(run.crossings.values()):,}",
        f"pairs of packages {len(run.crossings):,}",
        f"packages {len(packages)}: {' → '.join(packages)}",
    ]


def lists(run: Walk) -> list[str]:
    """Return the functions of each package in order of first call, as Markdown."""
    lines = []
    for package, codes in run.packages().items():
        modules: dict[str, list[str]] = {}
        for code in codes:
            module = code.co_filename[len(ROOT) :].removesuffix(".py").removeprefix(f"{package}/")
            name = code.co_qualname.replace(".<locals>", "")
            modules.setdefault(module, []).append(name)
        called = (f"*{module}*: {', '.join(names)}" for module, names in modules.items())
        lines.append(f"- **{package}** · " + " · ".join(called))
    return lines


def section(title: str, run: Walk) -> str:
    """Return the section of the page."""
    *figures, packages = summary(run)
    rows = [f"| {name} | {number} |" for name, number in (line.rsplit(" ", 1) for line in figures)]
    parts = [f"## {title}", "| | |\n|---|--:|\n" + "\n".join(rows), f"{packages.capitalize()}."]
    return "\n\n".join([*parts, "\n".join(lists(run))])


def main() -> None:
    """Follow an inference from a file, and a solve from reset to its stop."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--outline", action="store_true", help="no lists of functions")
    parser.add_argument("--page", action="store_true", help="write docs/decisions/walks.md")
    parser.add_argument("--world", default="resolvent/House-v0")
    parser.add_argument("--episodes", type=int, default=1_000, help="for the inference")
    options = parser.parse_args()
    sections = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "traces.jsonl"
        rs.collect(gym.make(options.world), episodes=options.episodes, seed=0).save(path)
        work = {
            "From a file of traces to a file of machines": partial(infer_file, path),
            "From the first reset to the stop of a solve": partial(solve, gym.make(options.world)),
        }
        for title, run in work.items():
            run()  # imports and computations that are done once are not part of the walk
            found = walk(run)
            print(
                "\n".join(["", title, *summary(found), *([] if options.outline else lists(found))])
            )
            sections.append(section(title, found))
    if options.page:
        text = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
        PAGE.write_text(f"{text}{MARK}\n\n" + "\n\n".join(sections) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
