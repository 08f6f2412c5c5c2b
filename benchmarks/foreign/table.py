"""Environments and logs of other projects, by the lines that a user writes: docs/foreign.md.

`--short` takes less of everything and prints the page: enough to see that all rows run.
"""

import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from measuring import Measured, write_page
from rows import ROWS

PAGE = Path(__file__).parents[2] / "docs" / "foreign.md"

_HEAD = """\
# Environments and logs of other projects

The machines of environments and logs that other people wrote, unchanged except as their row states,
inferred by the lines of code [below](#the-code). Fresh traces measure the machines: *correct*
predictions, those that are only *generalized* from other states (and correct), *wrong* and *unseen*
ones; of several machines, each figure is that of the worst. *Return* is the mean discounted return
(γ 0.95) of 100 fresh episodes with `rs.plan`, or with Q-learning on the machine's states where the
world itself is stochastic, next to that of the best policy that sees the whole state. *Warnings* are
those of `rs.diagnose` before inference and of `rs.infer`
([their meaning](how-to/diagnose.md#findings)); a row that ends in "no" has its reason
there. *Stochastic* rows have steps with varying outcomes whatever the labels before: their machines
are the most likely ones, and a prediction is the most likely output
([more on these](foreign-noise.md)).

Each row is one run with one seed. The number of episodes was increased until the result was stable,
where any number was enough. The lift, for example, has 101 states from 12,000 steps and 67 from
48,000, both with the warning `rare-transitions`, and its true 18 states after that. The threshold of this
warning was set with most of these rows in view, so they do not test it. Taxi, DoorKey in one layout,
RedBlueDoors and RepeatPrevious with four cards were measured before random actions had a seed of
their own, and with `noise="none"`.

<!-- Written by benchmarks/foreign/table.py: run `make benchmark NAME=foreign` instead of editing. -->
"""

_CODE = """
## The code

Each row is run exactly as printed, after `import gymnasium as gym` and `import resolvent as rs`.
Labels are made of observations or discovered; no event is named by hand
([without labels](how-to/labels.md#let-resolvent-discover-the-events)).
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all rows, and write the page."""
    write_page(PAGE, page, ROWS, arguments)
    return 0


def page(measured: Sequence[Measured]) -> str:
    """Return the page: the table, and the code of each row."""
    lines = [
        _HEAD,
        "| from | task | lines | steps | states | correct | generalized | wrong | unseen "
        "| return, of the best | solved | warnings |",
        "|---|---|--:|--:|---|--:|--:|--:|--:|---|---|---|",
        *map(_line, measured),
        _CODE,
    ]
    for code, group in groupby(measured, key=lambda row: row.row.code):
        names = ", ".join(f"{row.row.name} ({row.row.episodes:,} episodes)" for row in group)
        lines.append(f"{names}:\n\n```py\n{code.strip()}\n```\n")
    return "\n".join(lines)


def _line(row: Measured) -> str:
    shares = ["–"] * 4 if row.shares is None else [_share(share) for share in row.shares]
    states = "–" if row.states is None else ", ".join(f"{k} {n}" for k, n in row.states.items())
    paid = "–" if row.paid is None else f"{row.paid:.3g} of {row.optimum:.3g}"
    if row.contradicted and row.promised is not None:
        paid += f", promised {row.promised:.3g}"
    warnings = ", ".join(f"`{kind}`" for kind in dict.fromkeys(row.findings + row.warned)) or "–"
    cells = [
        row.row.origin,
        row.row.name,
        str(row.row.lines),
        f"{row.steps:,}",
        states,
        *shares,
        paid,
        outcome(row),
        warnings,
    ]
    return f"| {' | '.join(cells)} |"


def outcome(row: Measured) -> str:
    """Say in a word or two what came out: yes, almost, or no, and how the user learns of it.

    "Yes" is the true machine, or pay that is the best there is by machines that hardly ever
    err but where the world is random. "No" is what most of fresh traces are unseen of, or wrong.
    """
    right, assumed, wrong, _ = row.shares or (0.0, 0.0, 0.0, 0.0)
    if row.is_true is not None:
        return "yes: the true machine" if row.is_true else f"no: truly {row.true_states} states"
    if row.contradicted:
        return "no: the runs contradict the plan, and say so"
    if row.paid is not None and row.optimum is not None:
        short_of_it = (row.optimum - row.paid) / abs(row.optimum)
        if short_of_it < 0.02 and (wrong < 0.01 or row.noisy):
            return "yes"
        return "almost" if short_of_it < 0.2 and right + assumed > 0.9 else "no"
    if row.noisy:
        return "stochastic"
    return "no" if right + assumed < 0.9 else "almost"


def _share(share: float) -> str:
    return f"{share:.1%}" if share else "0"


if __name__ == "__main__":
    sys.exit(main())
