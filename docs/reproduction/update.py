"""Rewrite the tables and figures of docs/reproduction.md.

With a folder that `resolvent reproduce` wrote, from the results in it, which are
kept here in compact form; without, from those kept here.
"""

import sys
from pathlib import Path

from resolvent.paper.report import compact, draw_baselines, draw_policy, section, with_section
from resolvent.paper.reproduce import Results

HERE = Path(__file__).parent
KEPT = HERE / "results.jsonl"
PAGE = HERE.parent / "reproduction.md"


def main() -> None:
    """Read, and write."""
    if len(sys.argv) > 1:
        KEPT.write_bytes(compact(Results.read(Path(sys.argv[1]))).lines())
    results = Results.from_lines(KEPT.read_bytes())
    draw_baselines(HERE / "baselines.svg", results)
    draw_policy(HERE / "policy.svg", results)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(with_section(page, section(results)), encoding="utf-8")


if __name__ == "__main__":
    main()
