"""Collect the data of one machine: its states, the evidence for them, and its merges."""

from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent._util.records import to_builtins
from resolvent._util.text import amount, odds_text, short
from resolvent.evaluation.evidence import MachineEvidence
from resolvent.evaluation.observed import query_of
from resolvent.evaluation.separation import Separation
from resolvent.machines import Machine, MachineScore, MergeDecision
from resolvent.machines.compare import access_sequence_texts, label_sequence_text
from resolvent.machines.score import COUNTS
from resolvent.viz.text import main_share, output_name, short_name
from resolvent.viz.thumbnails import Caption, Gallery, event_text

MOST_STATES = 300
MOST_IN_MATRIX = 60  # maximum number of states in the matrix of pairs
MOST_COLUMNS, MOST_ROWS = 200, 400  # of the timeline, and of the table of decisions
_MOST_QUERIES, _MOST_LABELS = 4, 6
_MOST_WEAK_PAIRS, _MOST_EXPERIMENTS = 10, 8
_MOST_WEAK_MERGES, _MOST_NAMED = 8, 4
_MOST_LISTED = 300

_OUTCOMES = {"transition": "next observation", "reward": "reward"}

NumberedDecision = tuple[int, MergeDecision]


def about_machine(
    evidence: MachineEvidence, score: MachineScore, number: int, gallery: Gallery
) -> dict[str, Any]:
    """Return the sections of a machine; `element` is the id of its drawing in the page."""
    machine = evidence.machine
    return {
        # A machine may have any name, which is no id.
        "element": machine.name if machine.name in _OUTCOMES else f"machine-{number}",
        "name": short(machine.title),
        "short": short(short_name(machine.name)),
        "outcome": _OUTCOMES.get(machine.name) or short(machine.name),
        "output": short(output_name(machine)),
        "count": machine.states,
        "score": to_builtins(score, COUNTS),
        "states": state_rows(evidence, gallery),
        "proof": proof(evidence, gallery),
        "left_out": left_out(machine, gallery),
        "timeline": timeline(machine),
    }


def state_rows(evidence: MachineEvidence, gallery: Gallery) -> list[dict[str, Any]]:
    """Return for each state its path, its transitions, and the outputs that distinguish it."""
    machine, observed = evidence.machine, evidence.observed_outputs
    steps = np.bincount(observed["state"], observed.count, machine.states)
    distinguished, histories = _states_distinguished(machine), access_sequence_texts(machine)
    unseen: dict[int, list[str]] = {}
    for state, label in evidence.completeness.unseen_transitions:
        unseen.setdefault(state, []).append(event_text(label))
    return [
        {
            "state": state,
            "history": short(histories[state]),
            "steps": int(steps[state]),
            "transitions": _transitions(evidence, state),
            "unread": unseen.get(state, [])[:_MOST_LABELS],
            "unread_count": len(unseen.get(state, [])),
            "outputs": _distinguishing_outputs(machine, distinguished, state, gallery),
        }
        for state in range(min(machine.states, MOST_STATES))
    ]


def _transitions(evidence: MachineEvidence, state: int) -> list[dict[str, Any]]:
    """Return the transitions that the traces take from a state, trivial labels left out."""
    table, machine = evidence.observed_transitions, evidence.machine
    rows = np.arange(*np.searchsorted(table["state"], [state, state + 1]))
    rows = rows[~np.isin(table["label"][rows], machine.trivial)]
    return [
        {
            "label": event_text(machine.labels[int(table["label"][row])]),
            "to": int(table["target"][row]),
            "count": int(table.count[row]),
        }
        for row in rows[:_MOST_LABELS]
    ]


def _states_distinguished(machine: Machine) -> NDArray[np.int64]:
    """Return for each state-dependent output the number of states it distinguishes."""
    _, query = np.unique(machine.output_query, return_inverse=True)
    width = max(len(machine.outputs), 1)
    _, output = np.unique(query * width + machine.output_value, return_inverse=True)
    states: NDArray[np.int64] = np.bincount(query)[query] - np.bincount(output)[output]
    return states


def _distinguishing_outputs(
    machine: Machine, distinguished: NDArray[np.int64], state: int, gallery: Gallery
) -> list[dict[str, Any]]:
    """Return the outputs of a state that distinguish it from most other states."""
    rows = np.arange(*np.searchsorted(machine.output_state, [state, state + 1]))
    best = rows[np.argsort(-distinguished[rows], kind="stable")][:_MOST_QUERIES]
    outputs = []
    for row in best[distinguished[best] > 0].tolist():
        number, value = int(machine.output_query[row]), int(machine.output_value[row])
        share = main_share(machine, state, *machine.query(number))
        outputs.append(
            {
                "query": _query_caption(machine, number, gallery),
                "output": gallery.output_caption(machine, machine.outputs[value], share),
                "others": int(distinguished[row]),
            }
        )
    return outputs


def _query_caption(machine: Machine, number: int, gallery: Gallery) -> Caption:
    query = query_of(machine, number)
    return gallery.caption(query.observation, short(str(query)))


def proof(evidence: MachineEvidence, gallery: Gallery) -> dict[str, Any]:
    """Return the matrix of pairs of states, the weakest pairs, and the missing evidence.

    An entry of `matrix` is [state, state, number of queries, number of steps, labels to read
    first]. If there are too many pairs for the memory, `left_out` says so instead.
    """
    machine, separations = evidence.machine, evidence.separations
    experiments = evidence.experiments
    n_states = 0 if separations.skipped else min(machine.states, MOST_IN_MATRIX)
    columns = separations.queries, separations.support, separations.depth
    weakest = separations.weakest(_MOST_WEAK_PAIRS)
    return {
        "shown": n_states,
        "matrix": [
            [*pair, *(int(column[separations.number(*pair)]) for column in columns)]
            for pair in combinations(range(n_states), 2)
        ],
        "weakest": [_weak_pair(pair, machine, gallery) for pair in weakest],
        "pairs": len(separations),
        "left_out": separations.skipped,
        "completeness": [short(line, 400) for line in str(evidence.completeness).splitlines()],
        "complete": evidence.completeness.structure_complete,
        "least": [
            *(short(line.strip(), 300) for line in evidence.weakness.lines()),
            *(short(str(row), 300) for row in (*evidence.transitions(3), *evidence.outputs(3))),
        ],
        "next": [short(str(experiment), 300) for experiment in experiments[:_MOST_EXPERIMENTS]],
        "more": max(len(experiments) - _MOST_EXPERIMENTS, 0),
    }


def _weak_pair(pair: Separation, machine: Machine, gallery: Gallery) -> dict[str, Any]:
    outputs = pair.outputs or ()
    by: Caption = "nothing"
    if pair.query is not None:
        after = f" after {label_sequence_text(pair.suffix)}" if pair.suffix else ""
        odds = "" if pair.log_odds is None else f"; as one state {odds_text(-pair.log_odds)}"
        by = gallery.caption(pair.query.observation, short(f"{pair.query}{after}{odds}"))
    return {
        "states": [pair.first, pair.second],
        "by": by,
        "queries": pair.queries,
        "support": pair.support,
        "outputs": [gallery.output_caption(machine, support.output) for support in outputs],
        "locations": [list(support.location) for support in outputs],
    }


def left_out(machine: Machine, gallery: Gallery) -> dict[str, Any]:
    """Return the first labels and outputs excluded from the search."""
    first = slice(_MOST_LISTED)
    queries, values = machine.constant_query[first].tolist(), machine.constant_value[first].tolist()
    return {
        "labels": [event_text(label) for label in machine.trivial_labels[first]],
        "label_count": len(machine.trivial),
        "outputs": [
            [
                _query_caption(machine, number, gallery),
                gallery.output_caption(machine, machine.outputs[value]),
            ]
            for number, value in zip(queries, values, strict=True)
        ],
        "output_count": len(machine.constant_value),
    }


def timeline(machine: Machine) -> dict[str, Any] | None:
    """Return the decisions that led to a machine; None without a log.

    `columns` are the decisions in order, several to a column if there are many; `rows` are the
    first ones, [number, decision, agreeing, folded], the counts None for a new state; `weakest`
    are the merges with fewest agreeing outputs, those with most folded nodes first.
    """
    if machine.decisions is None:
        return None
    decisions = list(enumerate(machine.decisions, 1))
    merges = [numbered for numbered in decisions if not numbered[1].new]
    weakest = sorted(merges, key=lambda merge: (merge[1].agreeing, -merge[1].folded))
    columns = min(len(decisions), MOST_COLUMNS)
    bounds = [len(decisions) * column // max(columns, 1) for column in range(columns + 1)]
    new = len(decisions) - len(merges)
    reached = f": the first and {new:,} new" if new else ""
    reached += f"; {amount(len(merges), 'merge')}." if decisions else "; no decision was needed."
    return {
        "summary": f"{amount(machine.states, 'state')}{reached}",
        "total": len(decisions),
        "merges": len(merges),
        "bare": sum(merge.agreeing == 0 for _, merge in merges),
        "constants": len(machine.constant_value),
        "columns": [_column(decisions[start:stop]) for start, stop in pairwise(bounds)],
        "rows": list(map(_row, decisions[:MOST_ROWS])),
        "weakest": list(map(_row, weakest[:_MOST_WEAK_MERGES])),
    }


def _column(decisions: list[NumberedDecision]) -> dict[str, Any]:
    first, last = decisions[0][0], decisions[-1][0]
    new = [decision.target for _, decision in decisions if decision.new]
    agreeing = [decision.agreeing for _, decision in decisions if not decision.new]
    least, most = min(agreeing, default=None), max(agreeing, default=None)
    parts = []
    if len(decisions) == 1:
        _, decision = decisions[0]
        text = f"Decision {first:,}: {_transition_text(decision)}"
        if agreeing:
            verb = "agrees" if decision.agreeing == 1 else "agree"
            folded = amount(decision.folded, "tree node")
            text += f": {amount(decision.agreeing, 'output')} {verb}, {folded} folded"
    else:
        if new:
            names = [*map(str, new[:_MOST_NAMED]), *["…"] * (len(new) > _MOST_NAMED)]
            parts.append(f"{amount(len(new), 'new state')} ({', '.join(names)})")
        if agreeing:
            outputs = f"{least:,}" if least == most else f"{least:,} to {most:,}"
            parts.append(f"{amount(len(agreeing), 'merge')} on which {outputs} outputs agree")
        text = f"Decisions {first:,} to {last:,}: {', '.join(parts)}"
    return {
        "first": first,
        "last": last,
        "new": new,
        "merges": len(agreeing),
        "least": least,
        "most": most,
        "text": text,
    }


def _row(numbered: NumberedDecision) -> list[Any]:
    number, decision = numbered
    counts = (None, None) if decision.new else (decision.agreeing, decision.folded)
    return [number, _transition_text(decision), *counts]


def _transition_text(decision: MergeDecision) -> str:
    target = f"new state {decision.target}" if decision.new else str(decision.target)
    return f"{decision.source} —{event_text(decision.label)}→ {target}"
