"""What a report costs: gathering the evidence, writing the page, opening it in a browser.

The machines are random, of 300 states each, and explain all traces. Seconds to
gather and to write, the size of the file, and the time from asking a browser for
it until the player has lit its first state, with the time a step takes then. The
last two need Playwright and a browser (`make browser`). Run with `make
benchmark-report`; --traces 1000 100000 sets how many traces there are.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pipeline import timed

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from resolvent.evaluation.gathering import collect_evidence
from resolvent.viz.report.page import report
from synthetic_pair import synthetic

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
LENGTH = 20  # steps a trace

# A step with the layout it asks for, as a reader who holds the key down would have it.
STEPS = """() => {
  const started = performance.now(), forward = document.querySelector("#forward");
  for (let step = 1; step < 20; step++) {
    forward.click();
    document.body.getBoundingClientRect();
  }
  return (performance.now() - started) / 19;
}"""


def main() -> None:
    """Measure each number of traces and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--states", type=int, default=300)
    parser.add_argument("--traces", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--repetitions", type=int, default=5, help="of opening the page")
    options = parser.parse_args()
    print(f"{options.states} states in each machine, traces of {LENGTH} steps\n")
    header = ("traces", "gather s", "write s", "file kB", "open s", "spread", "step ms")
    print("".join(f"{name:>13}" for name in header), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for number in options.traces:
            path = Path(folder) / f"{number}.html"
            pair, traces = synthetic(options.states, number, LENGTH)
            started = time.perf_counter()
            evidence = collect_evidence(pair, traces)
            gathered = time.perf_counter()
            report(pair, traces, path, evidence=evidence)
            written = time.perf_counter()
            cells = (
                f"{number:,}",
                f"{gathered - started:.2f}",
                f"{written - gathered:.2f}",
                f"{path.stat().st_size / 1e3:.0f}",
                *opened(path, options.repetitions),
            )
            print("".join(f"{cell:>13}" for cell in cells), flush=True)


def opened(path: Path, repetitions: int) -> tuple[str, str, str]:
    """Return how long the page takes to be of use, and how long a step takes."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        program = None
    if program is None:
        return "no browser", "", ""
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=FLAGS)
        opening, steps = [], []
        for _ in range(repetitions):
            page = browser.new_page()
            opening.append(timed(lambda page=page: until_lit(page, path)))
            steps.append(page.evaluate(STEPS))
            page.close()
        browser.close()
    spread = f"{min(opening):.2f}–{max(opening):.2f}"
    return f"{statistics.median(opening):.2f}", spread, f"{statistics.median(steps):.1f}"


def until_lit(page: Any, path: Path) -> None:
    """Open a page, and wait for the player's first state."""
    page.goto(path.as_uri(), wait_until="commit")
    page.wait_for_selector("#transition .rs-state.lit", state="attached")


if __name__ == "__main__":
    main()
