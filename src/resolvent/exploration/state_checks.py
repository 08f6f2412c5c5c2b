"""Where a label led → the question that tells whether it is the state it is taken for.

What pays or ends everywhere tells nothing of that. So questions come first that another state
answers differently, until every other one is ruled out after each label, and after two in a row.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from resolvent.exploration.empirical_model import Context, EmpiricalModel, Query
from resolvent.exploration.values import TEST, TESTED, StepResult, Path, notable_steps, way_to

SURE: Final = 2
"""So many questions are enough where they rule out every other state."""

MAX_NODES: Final = 50_000
"""So many situations, with what was read before, are looked through at most."""

Other = tuple[int, int]
"""The number of a machine, and a state that it might be in instead."""


def undistinguished_states(
    model: EmpiricalModel, states: Sequence[int], asked: Iterable[Query]
) -> list[Other]:
    """Return the other states, machine by machine, that no question asked has ruled out."""
    return [
        (place, other)
        for place, size in enumerate(model.sizes)
        for other in range(size)
        if other != states[place]
        and not any(tells(model, states, (place, other), one) for one in asked)
    ]


def tells(model: EmpiricalModel, states: Sequence[int], other: Other, question: Query) -> bool:
    """Whether a machine answers a question otherwise in another state than in these."""
    place, state = other
    instead = [*states[:place], state, *states[place + 1 :]]
    mine = model.outputs.get(place, states, *question)
    theirs = model.outputs.get(place, instead, *question)
    return mine is not None and theirs is not None and mine != theirs


def distinguishing_query(
    model: EmpiricalModel, row: int, asked: set[Query], most: int
) -> Path | None:
    """Return the way to a notable question beside those asked, or None where these are enough.

    Questions come first that tell the states here from others that no question has ruled out;
    where none does, so many are enough.
    """
    done = asked & model.informative
    states = model.augmented_states[row][1:]
    others = undistinguished_states(model, states, done)
    enough = len(done) >= (most if others or max(model.sizes) == 1 else min(most, SURE))
    if enough and not others:
        return None
    came: StepResult = {}
    any_other: tuple[int, int] | None = None
    for here, action in notable_steps(model, row, asked, came):
        question = model.augmented_states[here][0], action
        if any(tells(model, states, one, question) for one in others):
            return way_to(came, (here, action), TEST, TESTED)
        if any_other is None and not enough:
            any_other = here, action
            if not others:
                break
    return None if any_other is None else way_to(came, any_other, TEST, TESTED)


def untested(
    model: EmpiricalModel, sources: Iterable[int], most: int, given_up: set[tuple[Context, int]]
) -> Path | None:
    """Return the nearest way into a context in which a notable question was never asked.

    `given_up` are contexts, and situations that they were entered in, from which none is to be
    asked. Where a label is read in several places, a question may be in reach of one only.
    """
    came: StepResult = dict.fromkeys(sources)
    waiting = deque(came)
    while waiting:
        here = waiting.popleft()
        states = model.augmented_states[here][1:]
        for action, led in enumerate(model.next_row[here]):
            if led < 0:
                continue
            label = model.label_read[here][action]
            if label not in model.neutral_labels:
                context = (label, *states)
                if (context, led) not in given_up:
                    rest = distinguishing_query(
                        model, led, model.queries_after.get(context, set()), most
                    )
                    if rest is not None:
                        way = way_to(came, (here, action), TEST, rest.why)
                        return Path(way.steps + rest.steps, TEST, rest.why, way.start)
                    given_up.add((context, led))
            if led not in came:
                came[led] = here, action
                waiting.append(led)
    return None


def untested_pair(
    model: EmpiricalModel,
    row: int,
    context: Context,
    most: int,
    given_up: set[tuple[Context, int, int]],
) -> Path | None:
    """Return the nearest way to read two labels after which too little was asked."""
    came: dict[tuple[int, Context], tuple[tuple[int, Context], int] | None] = {(row, context): None}
    waiting = deque(came)
    while waiting and len(came) < MAX_NODES:
        node = waiting.popleft()
        here, before = node
        states = model.augmented_states[here][1:]
        for action, led in enumerate(model.next_row[here]):
            if led < 0:
                continue
            label, after = model.label_read[here][action], before
            if label not in model.neutral_labels:
                after = (label, *states)
                pair = before, label
                # After the start alone, the first label was tested by itself.
                if before[0] >= 0 and (*pair, led) not in given_up:
                    rest = distinguishing_query(
                        model, led, model.queries_after_pair.get(pair, set()), most
                    )
                    if rest is not None:
                        steps = [(here, action)]
                        while (earlier := came[node]) is not None:
                            node, action = earlier
                            steps.append((node[0], action))
                        return Path((*reversed(steps), *rest.steps), TEST, rest.why, node[0])
                    given_up.add((*pair, led))
            if (led, after) not in came:
                came[led, after] = node, action
                waiting.append((led, after))
    return None
