"""A model and a policy → the next experiment: the path to an unknown step."""

from collections.abc import Iterable, Sequence

from resolvent.evaluation.experiments import Experiment, rarely_taken_reason
from resolvent.planning.model import Model
from resolvent.planning.stochastic_model import Outcomes
from resolvent.traces import Label
from resolvent.traces.symbols import NO_EVENT
from resolvent.traces.vocabulary import Codes


def first_unknown_step(policy: Codes, model: Model, starts: Iterable[int]) -> Experiment | None:
    """Return the experiment that a policy reaches soonest from any of some starts.

    In a stochastic model, the step taken least often comes first.
    """
    experiments = [_unknown_step_from(policy, model, int(start)) for start in starts]
    return min(
        (experiment for experiment in experiments if experiment is not None),
        key=lambda experiment: (experiment.taken or 0, len(experiment.actions or ())),
        default=None,
    )


def _unknown_step_from(policy: Codes, model: Model, start: int) -> Experiment | None:
    """Return the first unknown step that a policy takes; None if it only takes known ones.

    A step that ends episodes only sometimes is left out: trying it again would not settle it.
    In a stochastic model, it is the step taken least often.
    """
    if model.chances is not None:
        return _least_taken(model, model.chances, policy, start)
    here, path = start, list[tuple[int, int]]()
    while model.known[here, action := int(policy[here])]:
        path.append((here, action))
        here = int(model.following[here, action])
        if here < 0 or len(path) > len(model):
            return None
    if model.sometimes_ends[here, action]:
        return None
    return _experiment_after(model, path, (here, action))


def _least_taken(model: Model, outcomes: Outcomes, policy: Codes, start: int) -> Experiment | None:
    """Return the first unknown step on the likeliest path of a policy, or the least taken one."""
    here, path, met = start, list[tuple[int, int]](), set[int]()
    while here >= 0 and here not in met:
        met.add(here)
        path.append((here, int(policy[here])))
        if not model.known[path[-1]]:
            break
        here = int(model.following[path[-1]])
    times = [int(outcomes.seen[state * len(model.actions) + action]) for state, action in path]
    fewest = times.index(min(times))
    return _experiment_after(model, path[:fewest], path[fewest], min(times))


def nearest_unknown_step(model: Model) -> Experiment | None:
    """Return the unknown step nearest to any start; None if there is none.

    A step that ends episodes only sometimes is left out: trying it again would not settle it.
    """
    parent: dict[int, tuple[int, int] | None] = {int(start): None for start in model.starts}
    queue = list(parent)
    for here in queue:  # grows during the loop: breadth-first
        untried = ~model.known[here] & ~model.sometimes_ends[here]
        if untried.any():
            path, last = list[tuple[int, int]](), (here, int(untried.argmax()))
            while (step := parent[here]) is not None:
                path.append(step)
                here = step[0]
            return _experiment_after(model, path[::-1], last, None if model.chances is None else 0)
        for action, following in enumerate(model.following[here].tolist()):
            if following >= 0 and following not in parent:
                parent[following] = here, action
                queue.append(following)
    return None


def _experiment_after(
    model: Model, path: Sequence[tuple[int, int]], last: tuple[int, int], taken: int | None = None
) -> Experiment:
    """Return the experiment that follows a path of (situation, action), then takes a last step."""
    there, action = last
    start = path[0][0] if path else there
    situation = model.named(there)
    return Experiment(
        _labels_read(model, path, start),
        (situation[0], model.actions[action]),
        rarely_taken_reason(taken or 0),
        start=model.named(start),
        actions=tuple(model.actions[code] for _, code in path),
        situation=situation,
        taken=taken,
    )


def _labels_read(model: Model, path: Sequence[tuple[int, int]], start: int) -> tuple[Label, ...]:
    """Return the nonempty labels read on a path."""
    codes = [
        *model.read_first[model.starts == start].tolist(),
        *(int(model.read[step]) for step in path),
    ]
    labels = (model.labels[code] for code in codes if code >= 0)
    return tuple(label for label in labels if label != NO_EVENT)
