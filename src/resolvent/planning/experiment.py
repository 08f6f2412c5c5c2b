"""The next thing to try: how to get to a step that nobody has taken."""

from collections.abc import Iterable, Sequence

from resolvent.planning.model import Model
from resolvent.planning.stochastic_model import Outcomes
from resolvent.traces import Label
from resolvent.traces.symbols import NO_EVENT
from resolvent.traces.vocabulary import Codes
from resolvent.trust import Experiment
from resolvent.trust.experiment import seldom_taken


def first_unknown_step(policy: Codes, model: Model, starts: Iterable[int]) -> Experiment | None:
    """Return the experiment that a policy comes to soonest from any of some starts.

    Where there is chance, one that was taken least often goes first.
    """
    found = [_on_the_way(policy, model, int(start)) for start in starts]
    return min(
        (one for one in found if one is not None),
        key=lambda one: (one.taken or 0, len(one.actions or ())),
        default=None,
    )


def _on_the_way(policy: Codes, model: Model, start: int) -> Experiment | None:
    """Return the first unknown step that a policy takes; None if it only takes known ones.

    A step that is unknown because it ends episodes only sometimes is left out: trying it
    again would not settle it. Where there is chance, it is the step least taken.
    """
    if model.chances is not None:
        return _least_taken(model, model.chances, policy, start)
    here, way = start, list[tuple[int, int]]()
    while model.known[here, action := int(policy[here])]:
        way.append((here, action))
        here = int(model.following[here, action])
        if here < 0 or len(way) > len(model):
            return None
    if model.sometimes_ends[here, action]:
        return None
    return _experiment_after(model, way, (here, action))


def nearest_unknown_step(model: Model) -> Experiment | None:
    """Return the unknown step that the fewest known ones lead to from any start, if there is one.

    A step that is unknown because it ends episodes only sometimes is left out: trying it
    again would not settle it.
    """
    came_from: dict[int, tuple[int, int] | None] = {int(start): None for start in model.starts}
    waiting = list(came_from)
    for here in waiting:  # grows while it is gone through: the nearest come first
        unsettled = ~model.known[here] & ~model.sometimes_ends[here]
        if unsettled.any():
            return _way_to(model, came_from, here, int(unsettled.argmax()))
        for action, following in enumerate(model.following[here].tolist()):
            if following >= 0 and following not in came_from:
                came_from[following] = here, action
                waiting.append(following)
    return None


def _least_taken(model: Model, chances: Outcomes, policy: Codes, start: int) -> Experiment | None:
    """Return the step that a policy takes on its likeliest way and that was seen least often.

    If one is not known, that is the first of these.
    """
    here, way, met = start, list[tuple[int, int]](), set[int]()
    while here >= 0 and here not in met:
        met.add(here)
        way.append((here, int(policy[here])))
        if not model.known[way[-1]]:
            break
        here = int(model.following[way[-1]])
    times = [int(chances.seen[at * len(model.actions) + action]) for at, action in way]
    fewest = times.index(min(times))
    return _experiment_after(model, way[:fewest], way[fewest], min(times))


def _way_to(
    model: Model, came_from: dict[int, tuple[int, int] | None], there: int, action: int
) -> Experiment:
    way, here = list[tuple[int, int]](), there
    while (before := came_from[here]) is not None:
        way.append(before)
        here = before[0]
    times = None if model.chances is None else 0
    return _experiment_after(model, way[::-1], (there, action), times)


def _experiment_after(
    model: Model, way: Sequence[tuple[int, int]], last: tuple[int, int], taken: int | None = None
) -> Experiment:
    """Return the experiment that goes a way, as situations and actions, and then takes a step."""
    there, action = last
    start, situation = model.named(way[0][0] if way else there), model.named(there)
    return Experiment(
        _labels_read(model, way, there),
        (situation[0], model.actions[action]),
        seldom_taken(taken or 0),
        start=start,
        actions=tuple(model.actions[done] for _, done in way),
        situation=situation,
        taken=taken,
    )


def _labels_read(model: Model, way: Sequence[tuple[int, int]], there: int) -> tuple[Label, ...]:
    """Return the labels that are read on a way, but for those that say that nothing happened."""
    start = way[0][0] if way else there
    codes = [
        *model.read_first[model.starts == start].tolist(),
        *(int(model.read[one]) for one in way),
    ]
    labels = (model.labels[code] for code in codes if code >= 0)
    return tuple(label for label in labels if label != NO_EVENT)
