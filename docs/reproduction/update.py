"""Rewrite the tables and figures of docs/reproduction.md.

With a folder that `resolvent reproduce` wrote, from the results in it, which are
kept here in compact form; without, from those kept here. With --add only the cells in
the folder take the place of those kept here: those of some methods with a longer limit, say.
"""

import argparse
from pathlib import Path

from resolvent.reproduction.analysis.documenting import (
    compact,
    section,
    with_cells_of,
    with_section,
)
from resolvent.reproduction.analysis.figures import draw_baselines, draw_policy
from resolvent.reproduction.running.store import Results

HERE = Path(__file__).parent
KEPT = HERE / "results.jsonl"
PAGE = HERE.parent / "reproduction.md"


def main() -> None:
    """Read, and write."""
    parser = argparse.ArgumentParser(description="Rewrite docs/reproduction.md.")
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--add", action="store_true", help="keep the cells that it does not hold")
    asked = parser.parse_args()
    if asked.folder is not None:
        made = compact(Results.read(asked.folder))
        if asked.add:
            made = with_cells_of(Results.from_lines(KEPT.read_bytes()), made)
        KEPT.write_bytes(made.lines())
    results = Results.from_lines(KEPT.read_bytes())
    draw_baselines(HERE / "baselines.svg", results)
    draw_policy(HERE / "policy.svg", results)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(with_section(page, section(results)), encoding="utf-8")


if __name__ == "__main__":
    main()
