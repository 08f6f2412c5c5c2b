"""A machine → what its search was spared: labels that change nothing, answers without memory."""

from typing import Any

from resolvent._util.text import amount, short
from resolvent.display.report.gallery import Gallery, answer_told
from resolvent.display.report.wording import event_text
from resolvent.evaluation.observed import query_of
from resolvent.machines import Machine

_MOST_NAMED, _MOST_LISTED = 12, 300


def reductions(machine: Machine) -> list[str]:
    """Say what the machine was spared: labels that change nothing, answers without memory."""
    name = short(machine.title)
    said = []
    if machine.trivial:
        named = [event_text(label) for label in machine.trivial_labels[:_MOST_NAMED]]
        more = len(machine.trivial) - len(named)
        names = ", ".join(named) + (f" and {more} more" if more else "")
        said.append(f"Labels that change nothing in the {name}: {names}.")
    constants, by_state = len(machine.constant_value), len(machine.output_value)
    said.append(
        f"Of the {name}'s {amount(constants + by_state, 'answer')}, {constants:,} need no memory "
        f"and {by_state:,} depend on its state."
    )
    if machine.supplemented:
        said.append(f"The {name} is told the Transition Machine's state with each observation.")
    return said


def spared(machine: Machine, gallery: Gallery) -> dict[str, Any]:
    """Return the labels and the answers that took no part in the search, as many as can be read."""
    numbers = zip(machine.constant_question[:_MOST_LISTED], machine.constant_value, strict=False)
    answers = [
        (query_of(machine, int(question)), machine.outputs[int(value)])
        for question, value in numbers
    ]
    return {
        "labels": [event_text(label) for label in machine.trivial_labels[:_MOST_LISTED]],
        "all_labels": len(machine.trivial),
        "answers": [
            [
                gallery.told(question.observation, short(str(question))),
                answer_told(machine, value, gallery),
            ]
            for question, value in answers
        ],
        "all_answers": len(machine.constant_value),
    }
