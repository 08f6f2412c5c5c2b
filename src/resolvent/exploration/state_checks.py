"""Where a label led → the question that tells whether it is the state it is taken for.

What pays or ends everywhere tells nothing of that. So questions come first that another state
answers differently, until every other one is ruled out after each label, and after two in a row.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from resolvent.exploration.empirical_model import Context, Knowledge, Question
from resolvent.exploration.values import TEST, TESTED, Came, Way, notable_steps, way_to

SURE: Final = 2
"""So many questions are enough where they rule out every other state."""

MOST_SEARCHED: Final = 50_000
"""So many situations, with what was read before, are looked through at most."""

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
    instead = [*states[:place], state, *states[place + 1 :]]
    mine = knowledge.answers.get(place, states, *question)
    theirs = knowledge.answers.get(place, instead, *question)
    return mine is not None and theirs is not None and mine != theirs


def telling_question(knowledge: Knowledge, row: int, asked: set[Question], most: int) -> Way | None:
    """Return the way to a notable question beside those asked, or None where these are enough.

    Questions come first that tell the states here from others that no question has ruled out;
    where none does, so many are enough.
    """
    done = asked & knowledge.notable
    states = knowledge.situations[row][1:]
    others = untold_states(knowledge, states, done)
    enough = len(done) >= (most if others or max(knowledge.sizes) == 1 else min(most, SURE))
    if enough and not others:
        return None
    came: Came = {}
    any_other: tuple[int, int] | None = None
    for here, action in notable_steps(knowledge, row, asked, came):
        question = knowledge.situations[here][0], action
        if any(tells(knowledge, states, one, question) for one in others):
            return way_to(came, (here, action), TEST, TESTED)
        if any_other is None and not enough:
            any_other = here, action
            if not others:
                break
    return None if any_other is None else way_to(came, any_other, TEST, TESTED)


def untested(
    knowledge: Knowledge, sources: Iterable[int], most: int, given_up: set[tuple[Context, int]]
) -> Way | None:
    """Return the nearest way into a context in which a notable question was never asked.

    `given_up` are contexts, and situations that they were entered in, from which none is to be
    asked. Where a label is read in several places, a question may be in reach of one only.
    """
    came: Came = dict.fromkeys(sources)
    waiting = deque(came)
    while waiting:
        here = waiting.popleft()
        states = knowledge.situations[here][1:]
        for action, led in enumerate(knowledge.following[here]):
            if led < 0:
                continue
            label = knowledge.read[here][action]
            if label not in knowledge.plain:
                context = (label, *states)
                if (context, led) not in given_up:
                    rest = telling_question(
                        knowledge, led, knowledge.contexts.get(context, set()), most
                    )
                    if rest is not None:
                        way = way_to(came, (here, action), TEST, rest.why)
                        return Way(way.steps + rest.steps, TEST, rest.why, way.start)
                    given_up.add((context, led))
            if led not in came:
                came[led] = here, action
                waiting.append(led)
    return None


def untested_pair(
    knowledge: Knowledge,
    row: int,
    context: Context,
    most: int,
    given_up: set[tuple[Context, int, int]],
) -> Way | None:
    """Return the nearest way to read two labels after which too little was asked."""
    came: dict[tuple[int, Context], tuple[tuple[int, Context], int] | None] = {(row, context): None}
    waiting = deque(came)
    while waiting and len(came) < MOST_SEARCHED:
        node = waiting.popleft()
        here, before = node
        states = knowledge.situations[here][1:]
        for action, led in enumerate(knowledge.following[here]):
            if led < 0:
                continue
            label, after = knowledge.read[here][action], before
            if label not in knowledge.plain:
                after = (label, *states)
                pair = before, label
                # After the start alone, the first label was tested by itself.
                if before[0] >= 0 and (*pair, led) not in given_up:
                    rest = telling_question(knowledge, led, knowledge.pairs.get(pair, set()), most)
                    if rest is not None:
                        steps = [(here, action)]
                        while (earlier := came[node]) is not None:
                            node, action = earlier
                            steps.append((node[0], action))
                        return Way((*reversed(steps), *rest.steps), TEST, rest.why, node[0])
                    given_up.add((*pair, led))
            if (led, after) not in came:
                came[led, after] = node, action
                waiting.append((led, after))
    return None
