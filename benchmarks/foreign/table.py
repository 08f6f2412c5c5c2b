"""Environments and logs of others: what comes of each, from the lines that a user writes.

`make benchmark-foreign` writes docs/foreign.md, in some minutes. With --short there is less of
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
and `rs.infer` when it was: [what these words mean](how-to/diagnose.md#findings). Where
a row ends in "no", that is why. *Taken for chance* is where the same step leads to now this, now
that, whatever was labelled before: the machines are the most likely ones, and right is what their
most likely answer is. There is [more on those](foreign-noise.md).

Each row is one run with one seed. How many episodes it gets was chosen by trying: as many as were
enough where any number tried was. The lift, for one, has 101 states from 12,000 steps and 67 from
48,000, both with a warning of `rare-moves`, before it has its 18. The threshold of that warning was
set with most of these rows in view, so that they do not test it. Taxi, DoorKey in one layout,
RedBlueDoors and RepeatPrevious with four cards were measured before random actions were drawn by
a seed of their own, and with `noise="none"`.

<!-- Written by benchmarks/foreign/table.py: run `make benchmark-foreign` instead of editing. -->
"""

_CODE = """
## The code

Each row is run as it stands here, after `import gymnasium as gym` and `import resolvent as rs`.
Nobody had to name events: labels are made of what is seen, or found
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
        "| from | what | lines | steps | states | right | assumed | wrong | unseen "
        "| paid, of at most | came out | warned of |",
        "|---|---|--:|--:|---|--:|--:|--:|--:|---|---|---|",
        *map(_line, measured),
        _CODE,
    ]
    for code, group in groupby(measured, key=lambda one: one.row.code):
        names = ", ".join(f"{one.row.name} ({one.row.episodes:,} episodes)" for one in group)
        lines.append(f"{names}:\n\n```py\n{code.strip()}\n```\n")
    return "\n".join(lines)


def _line(one: Measured) -> str:
    shares = ["–"] * 4 if one.shares is None else [_share(share) for share in one.shares]
    states = "–" if one.states is None else ", ".join(f"{k} {n}" for k, n in one.states.items())
    paid = "–" if one.paid is None else f"{one.paid:.3g} of {one.optimum:.3g}"
    if one.contradicted and one.promised is not None:
        paid += f", promised {one.promised:.3g}"
    told = ", ".join(f"`{kind}`" for kind in dict.fromkeys(one.findings + one.warned)) or "–"
    cells = [
        one.row.origin,
        one.row.name,
        str(one.row.lines),
        f"{one.steps:,}",
        states,
        *shares,
        paid,
        outcome(one),
        told,
    ]
    return f"| {' | '.join(cells)} |"


def outcome(one: Measured) -> str:
    """Say in a word or two what came out: yes, almost, or no, and how the user learns of it.

    "Yes" is the true machine, or pay that is the best there is by machines that hardly ever
    err but where the world is random. "No" is what most of fresh traces are unseen of, or wrong.
    """
    right, assumed, wrong, _ = one.shares or (0.0, 0.0, 0.0, 0.0)
    if one.is_true is not None:
        return "yes: the true machine" if one.is_true else f"no: truly {one.true_states} states"
    if one.contradicted:
        return "no: the runs contradict the plan, and say so"
    if one.paid is not None and one.optimum is not None:
        short_of_it = (one.optimum - one.paid) / abs(one.optimum)
        if short_of_it < 0.02 and (wrong < 0.01 or one.noisy):
            return "yes"
        return "almost" if short_of_it < 0.2 and right + assumed > 0.9 else "no"
    if one.noisy:
        return "taken for chance"
    return "no" if right + assumed < 0.9 else "almost"


def _share(share: float) -> str:
    return f"{share:.1%}" if share else "0"


if __name__ == "__main__":
    sys.exit(main())
