"""The log of merges → a timeline that fits a page, the weakest merges, and a table."""

from itertools import pairwise
from typing import Any

from resolvent._util.text import amount, short
from resolvent.display.merge_lines import basis_text, retold, summary
from resolvent.display.report.wording import event_text
from resolvent.inference.strategy import STRATEGIES
from resolvent.machines import Machine, Machines, MergeDecision

MOST_COLUMNS, MOST_ROWS = 200, 400
_MOST_WEAK, _MOST_NAMED = 8, 4

Numbered = tuple[int, MergeDecision]


def found(machines: Machines) -> list[str]:
    """Say of machines without a log that they have none, and what the log of others is."""
    without = [f"the {short(one.title)}" for one in machines.values() if one.decisions is None]
    said = []
    if without:
        said.append(f"How {_listed(without)} came about is not known: infer again to see it.")
    name = machines.provenance.options.get("strategy") if machines.provenance else None
    strategy = STRATEGIES.get(name) if isinstance(name, str) else None  # none of the user's own
    if len(without) < len(machines) and strategy is not None and not strategy.merges:
        said.append(f"S{retold(strategy)[1:]}.")
    return said


def _listed(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def timeline(machine: Machine) -> dict[str, Any] | None:
    """Return what a page shows of the decisions that led to a machine; None without a log.

    `columns` are all of them from first to last, several to a column if there are
    many; `rows` are the first of them, [number, decision, agreeing, folded], the
    counts None for a new state; `weakest` are rows of merges, fewest agreeing answers
    first and of equals those that folded most.
    """
    if machine.decisions is None:
        return None
    decisions = list(enumerate(machine.decisions, 1))
    merges = [(number, one) for number, one in decisions if not one.new]
    weakest = sorted(merges, key=lambda merge: (merge[1].agreeing, -merge[1].folded))
    return {
        "summary": f"{summary(machine)}.",
        "total": len(decisions),
        "merges": len(merges),
        "bare": sum(one.agreeing == 0 for _, one in merges),
        "constants": len(machine.constant_value),
        "columns": [_column(part) for part in _parts(decisions)],
        "rows": list(map(_row, decisions[:MOST_ROWS])),
        "weakest": list(map(_row, weakest[:_MOST_WEAK])),
    }


def _parts(decisions: list[Numbered]) -> list[list[Numbered]]:
    """Cut the log into stretches of about one length, as many as can be drawn."""
    columns = min(len(decisions), MOST_COLUMNS)
    cuts = [len(decisions) * column // columns for column in range(columns + 1)] if columns else []
    return [decisions[start:stop] for start, stop in pairwise(cuts)]


def _column(part: list[Numbered]) -> dict[str, Any]:
    agreeing = [one.agreeing for _, one in part if not one.new]
    return {
        "first": part[0][0],
        "last": part[-1][0],
        "new": [one.target for _, one in part if one.new],
        "merges": len(agreeing),
        "least": min(agreeing, default=None),
        "most": max(agreeing, default=None),
        "text": _column_text(part, agreeing),
    }


def _column_text(part: list[Numbered], agreeing: list[int]) -> str:
    if len(part) == 1:
        number, one = part[0]
        basis = "" if one.new else f": {basis_text(one)}"
        return f"Decision {number:,}: {_arrow(one)}{basis}"
    said = []
    if new := [one.target for _, one in part if one.new]:
        named = [*map(str, new[:_MOST_NAMED]), *["…"] * (len(new) > _MOST_NAMED)]
        said.append(f"{amount(len(new), 'new state')} ({', '.join(named)})")
    if agreeing:
        least, most = min(agreeing), max(agreeing)
        answers = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        said.append(f"{amount(len(agreeing), 'merge')} on which {answers} answers agree")
    return f"Decisions {part[0][0]:,} to {part[-1][0]:,}: {', '.join(said)}"


def _row(numbered: Numbered) -> list[Any]:
    number, one = numbered
    counts = (None, None) if one.new else (one.agreeing, one.folded)
    return [number, _arrow(one), *counts]


def _arrow(one: MergeDecision) -> str:
    target = f"new state {one.target}" if one.new else str(one.target)
    return f"{one.source} —{event_text(one.label)}→ {target}"
