"""Environments and logs of others: what comes of each, from the lines that a user writes.

`make benchmark NAME=foreign` writes docs/foreign.md, in some minutes. With --short there is less of
everything, in seconds, and the page goes to standard output: enough to see that all of it runs.
"""

import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from measuring import Measured, write_page
from rows import ROWS

PAGE = Path(__file__).parents[2] / "docs" / "foreign.md"

_HEAD = """\
# Environments and logs of others

What comes of environments and logs that nobody here wrote, as they are or with what their row
says, from the lines of code that stand [below](#the-code). A machine knows fresh traces that it
was not inferred from: what it predicts *right*, what it only *assumes* (and rightly), what is
*wrong* and what it leaves *unseen*; of several machines each figure is that of the worst. *Paid*
is what acting by `rs.plan`, or by Q-learning on the machine's states where the world itself is
random, paid in 100 fresh episodes, beside what the best policy is paid that sees everything
(both discounted by 0.95). *Warned of* is what `rs.diagnose` found before anything was inferred,
and `rs.infer` when it was: [what these words mean](how-to/diagnose.md#what-is-looked-for). Where
a row ends in "no", that is why. *Taken for chance* is where the same step leads to now this, now
that, whatever was labelled before: the machines are the most likely ones, and right is what their
most likely answer is. There is [more on those](foreign-noise.md).

Each row is one run with one seed. How many episodes it gets was chosen by trying: as many as were
enough where any number tried was. The lift, for one, has 101 states from 12,000 steps and 67 from
48,000, both with a warning of `rare-moves`, before it has its 18. The threshold of that warning was
set with most of these rows in view, so that they do not test it. Taxi, DoorKey in one layout,
RedBlueDoors and RepeatPrevious with four cards were measured before random actions were drawn by
a seed of their own, and with `noise="none"`.

<!-- Written by benchmarks/foreign/table.py: run `make benchmark NAME=foreign` instead of editing. -->
"""

_CODE = """
## The code

Each row is run as it stands here, after `import gymnasium as gym` and `import resolvent as rs`.
Nobody had to name events: labels are made of what is seen, or found
([without labels](how-to/no-labels.md)).
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all rows, and write the page."""
    write_page(PAGE, page, ROWS, arguments)
    return 0


def page(measured: Sequence[Measured]) -> str:
    """Return the page: the table, and the code of each row."""
    lines = [
        _HEAD,
        "| from | what | lines | steps | states | right | assumed | wrong | unseen "
        "| paid, of at most | came out | warned of |",
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
        return "taken for chance"
    return "no" if right + assumed < 0.9 else "almost"


def _share(share: float) -> str:
    return f"{share:.1%}" if share else "0"


if __name__ == "__main__":
    sys.exit(main())
