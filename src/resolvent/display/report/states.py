"""A machine and its evidence → for each state what leads there, what tells it apart, how often."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent._util.text import short
from resolvent.display.report.gallery import Gallery, answer_told
from resolvent.display.report.wording import event_text
from resolvent.evaluation.evidence import MachineEvidence
from resolvent.evaluation.observed import query_of
from resolvent.machines import Machine
from resolvent.machines.compare import history_text
from resolvent.machines.drawing import main_share

MOST_STATES = 300
_MOST_QUESTIONS, _MOST_LABELS = 4, 6


def state_rows(evidence: MachineEvidence, gallery: Gallery) -> list[dict[str, Any]]:
    """Return a row for each state, at most `MOST_STATES`."""
    machine = evidence.machine
    asked = _counted(evidence.answers.state, evidence.answers.count, machine.states)
    telling = _telling(machine)
    reachable = set(machine.reachable())
    unseen: dict[int, list[str]] = {}
    for state, label in evidence.completeness.unseen_transitions:
        unseen.setdefault(state, []).append(event_text(label))
    return [
        {
            "state": state,
            "history": short(history_text(machine.history(state)))
            if state in reachable
            else "no labels lead here",
            "steps": int(asked[state]),
            "moves": _moves(evidence, state),
            "unread": unseen.get(state, [])[:_MOST_LABELS],
            "unread_count": len(unseen.get(state, [])),
            "answers": [
                _answer(machine, row, int(telling[row]), gallery)
                for row in _best(machine, telling, state)
            ],
        }
        for state in range(min(machine.states, MOST_STATES))
    ]


def _counted(group: NDArray[Any], count: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
    total = np.zeros(groups, np.int64)
    np.add.at(total, group, count)
    return total


def _moves(evidence: MachineEvidence, state: int) -> list[dict[str, Any]]:
    """Return the transitions that the traces take from a state, trivial labels left out."""
    moves, machine = evidence.moves, evidence.machine
    rows = np.arange(*np.searchsorted(moves.state, [state, state + 1]))
    rows = rows[~np.isin(moves.label[rows], machine.trivial)]
    return [
        {
            "label": event_text(machine.labels[int(moves.label[row])]),
            "to": int(moves.target[row]),
            "count": int(moves.count[row]),
        }
        for row in rows[:_MOST_LABELS]
    ]


def _telling(machine: Machine) -> NDArray[np.int64]:
    """Return for each answer that depends on the state how many other states answer otherwise."""
    _, question = np.unique(machine.output_question, return_inverse=True)
    width = max(len(machine.outputs), 1)
    _, same = np.unique(question * width + machine.output_value, return_inverse=True)
    asked: NDArray[np.int64] = np.bincount(question)[question] if len(question) else question
    return asked - np.bincount(same)[same] if len(same) else asked


def _best(machine: Machine, telling: NDArray[np.int64], state: int) -> list[int]:
    """Return the rows of the answers that tell a state from most others."""
    first, last = np.searchsorted(machine.output_state, [state, state + 1])
    rows = np.arange(first, last)
    rows = rows[np.argsort(-telling[rows], kind="stable")]
    return [int(row) for row in rows[:_MOST_QUESTIONS] if telling[row] > 0]


def _answer(machine: Machine, row: int, others: int, gallery: Gallery) -> dict[str, Any]:
    number = int(machine.output_question[row])
    question = query_of(machine, number)
    output = machine.outputs[int(machine.output_value[row])]
    share = main_share(machine, int(machine.output_state[row]), *machine.question(number))
    return {
        "question": gallery.told(question.observation, short(str(question))),
        "output": answer_told(machine, output, gallery, share),
        "others": others,
    }
