"""Evidence about a machine → what tells its states apart, what is missing, what to collect."""

from itertools import combinations
from typing import Any

from resolvent._util.text import odds_text, short
from resolvent.display.report.gallery import Gallery, Told, answer_told
from resolvent.evaluation.evidence import MachineEvidence
from resolvent.evaluation.separation import Separation, Separations
from resolvent.machines import Machine
from resolvent.machines.compare import history_text

MOST_IN_MATRIX = 60
_MOST_WEAK, _MOST_EXPERIMENTS = 10, 8


def proof(evidence: MachineEvidence, gallery: Gallery) -> dict[str, Any]:
    """Return the matrix of states against states, the weakest pairs, and what is missing.

    An entry of `matrix` is [state, state, questions, times asked, labels to read first]. Where
    there are too many pairs for the memory, `left_out` says so instead.
    """
    separations, experiments = evidence.separations, evidence.experiments
    shown = 0 if separations.left_out else min(evidence.machine.states, MOST_IN_MATRIX)
    return {
        "shown": shown,
        "matrix": [
            [one, other, *_figures(separations, separations.number(one, other))]
            for one, other in combinations(range(shown), 2)
        ],
        "weakest": [
            _weak(one, evidence.machine, gallery) for one in separations.weakest(_MOST_WEAK)
        ],
        "inseparable": int((separations.depth < 0).sum()),
        "pairs": len(separations),
        "left_out": separations.left_out,
        "completeness": [short(line, 400) for line in str(evidence.completeness).splitlines()],
        "complete": evidence.completeness.structure_complete,
        "least": [
            *(short(line.strip(), 300) for line in evidence.weakness.lines()),
            *(short(str(one), 300) for one in (*evidence.transitions(3), *evidence.outputs(3))),
        ],
        "next": [short(str(one), 300) for one in experiments[:_MOST_EXPERIMENTS]],
        "more": max(len(experiments) - _MOST_EXPERIMENTS, 0),
    }


def _figures(separations: Separations, pair: int) -> list[int]:
    columns = separations.questions, separations.support, separations.depth
    return [int(column[pair]) for column in columns]


def _weak(one: Separation, machine: Machine, gallery: Gallery) -> dict[str, Any]:
    return {
        "states": [one.first, one.second],
        "by": _by(one, gallery),
        "questions": one.questions,
        "support": one.support,
        "answers": [answer_told(machine, answer.output, gallery) for answer in one.answers or ()],
        "places": [list(answer.place) for answer in one.answers or ()],
    }


def _by(one: Separation, gallery: Gallery) -> Told:
    """Say by which question two states are told apart."""
    if one.suffix is None or one.question is None:
        return "nothing"
    after = f" after {history_text(one.suffix)}" if one.suffix else ""
    odds = "" if one.log_odds is None else f"; as one state {odds_text(-one.log_odds)}"
    return gallery.told(one.question.observation, short(f"{one.question}{after}{odds}"))
