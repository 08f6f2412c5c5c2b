"""Which questions tell states apart: a step that two states of a machine answer differently."""

from collections.abc import Iterable, Sequence

from resolvent.exploring.knowledge import Knowledge, Question

Other = tuple[int, int]
"""The number of a machine, and a state that it might be in instead."""


def untold_states(
    knowledge: Knowledge, states: Sequence[int], asked: Iterable[Question]
) -> list[Other]:
    """Return the other states, machine by machine, that no question asked has ruled out."""
    return [
        (place, other)
        for place, size in enumerate(knowledge.sizes)
        for other in range(size)
        if other != states[place]
        and not any(tells(knowledge, states, (place, other), one) for one in asked)
    ]


def tells(knowledge: Knowledge, states: Sequence[int], other: Other, question: Question) -> bool:
    """Whether a machine answers a question otherwise in another state than in these."""
    place, state = other
    beside = () if place == 0 else (states[0],)
    answers = knowledge.answers[place]
    mine = answers.get((states[place], *beside, *question))
    theirs = answers.get((state, *beside, *question))
    return mine is not None and theirs is not None and mine != theirs
