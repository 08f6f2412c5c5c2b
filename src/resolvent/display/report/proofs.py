"""Evidence about a machine → what tells its states apart, what is missing, what to collect."""

from typing import Any

from resolvent.display.report.wording import short, value_text
from resolvent.evidence import MachineEvidence, Separation
from resolvent.machines.drawing import history_text

MOST_IN_MATRIX = 60
_MOST_WEAK, _MOST_EXPERIMENTS = 10, 8


def proof(evidence: MachineEvidence) -> dict[str, Any]:
    """Return the matrix of states against states, the weakest pairs, and what is missing.

    An entry of `matrix` is [state, state, questions, times asked, labels to read first].
    """
    shown = min(evidence.machine.states, MOST_IN_MATRIX)
    weakest = sorted(evidence.separations, key=lambda one: (one.support, one.first, one.second))
    experiments = evidence.experiments
    return {
        "shown": shown,
        "matrix": [
            [one.first, one.second, one.questions, one.support, _depth(one)]
            for one in evidence.separations
            if one.second < shown
        ],
        "weakest": [_weak(one) for one in weakest[:_MOST_WEAK]],
        "inseparable": len(evidence.inseparable),
        "pairs": len(evidence.separations),
        "completeness": [short(line, 400) for line in str(evidence.completeness).splitlines()],
        "complete": evidence.completeness.structure_complete,
        "least": [
            short(str(one), 300) for one in (*evidence.transitions()[:3], *evidence.outputs(3))
        ],
        "next": [short(str(one), 300) for one in experiments[:_MOST_EXPERIMENTS]],
        "more": max(len(experiments) - _MOST_EXPERIMENTS, 0),
    }


def _depth(one: Separation) -> int:
    return -1 if one.suffix is None else len(one.suffix)


def _weak(one: Separation) -> dict[str, Any]:
    told = one.suffix is not None and one.question is not None
    after = f" after {history_text(one.suffix)}" if one.suffix else ""
    return {
        "states": [one.first, one.second],
        "by": short(f"{one.question}{after}") if told else "nothing",
        "questions": one.questions,
        "support": one.support,
        "answers": [value_text(answer.output) for answer in one.answers or ()],
        "places": [list(answer.place) for answer in one.answers or ()],
    }
