"""The search for events: traces without labels → the labelling that explains them best."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np

from resolvent.errors import ContradictoryTraces, OptionError, TraceError
from resolvent.events.classes import Events, class_codes, events_of
from resolvent.events.description import Description
from resolvent.events.growing import grown_table
from resolvent.events.mixing import first_mixture, mixed
from resolvent.events.steps import (
    EventSteps,
    Table,
    TimeLeft,
    distinct_traces,
    event_steps,
    is_over,
)
from resolvent.inference.conflict import find_contradiction
from resolvent.samples import NONE, Histories, LabelTiming, output_samples
from resolvent.traces import TraceSet
from resolvent.traces.labelling import Labelling, Reads
from resolvent.traces.schema import OBSERVATION
from resolvent.traces.vocabulary import Codes, distinct_pairs

Found = TypeVar("Found")

SOURCES: Final[tuple[Reads, ...]] = ("observation", "action", "action+observation")
"""What labels may be made of, in the order in which it is tried."""

_WORK: Final = 10_000_000_000
"""Steps that growing a table may walk through."""

_ATTEMPTS: Final = 4
"""So many times a table is grown, with other random numbers, until one explains all answers."""

_FEW: Final = 12
"""Up to so many sources may as well be labels of their own: then less is tried before."""

_LARGEST: Final = 20_000_000
"""Tables are grown if no more pairs of a source and an answer are to be counted: with more,
observations are hardly ever seen twice, and to find events in them is hopeless."""

_DENSE: Final = 0.05
"""The share of steps whose answers tell something from which on classes are mixed."""

_MANY: Final = 20_000
"""With so many such steps, classes are mixed before a table is grown."""

_ROUNDS: Final = 1_000
"""Of mixing, at most."""

_MIXED: Final = ((8, 8), (12, 10))
"""States and classes to begin mixing with; those that are not needed become the same."""

_GROWN: Final = 300_000
"""Steps that a table is grown on at first."""

_SAMPLE: Final = 500_000
"""Steps that classes are mixed on at first."""


class Limits(NamedTuple):
    """What random numbers a search begins with, and how long it may take."""

    seed: int
    effort: float
    time_left: TimeLeft


@dataclass(frozen=True)
class FoundEvents(Generic[Found]):
    """A labelling, when its labels are read, and what was inferred with it.

    `states` are as many as explain each output, so that no machine needs more; empty
    where no few events were found.
    """

    labelling: Labelling
    timing: LabelTiming
    inferred: Found
    states: Mapping[str, int] = field(default_factory=dict)


def find_events(
    traces: TraceSet,
    outputs: Sequence[str],
    infer: Callable[[TraceSet, LabelTiming], Found],
    *,
    length: Callable[[Found], float] = lambda inferred: 0.0,
    seed: int = 0,
    effort: float = 1.0,
    time_left: TimeLeft = lambda: None,
) -> FoundEvents[Found]:
    """Find out what the events are: the labelling with which machines explain all answers.

    Labels that the traces have make no difference. `infer` takes traces with labels, and
    when these are read, and raises `ContradictoryTraces` if no machines explain them. What
    changes no answer is no event. Where no few events explain everything, each observation
    is a label or each action, whichever has inferred what is shorter by `length`; or each
    pair of both. If nothing explains the traces, the contradiction is raised that is left then.

    >>> import gymnasium as gym, resolvent as rs
    >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=50, seed=0)
    >>> infer = lambda labelled, timing: rs.infer(labelled, timing=timing, noise="none").machines
    >>> found = find_events(traces, ["observation", "reward"], infer)
    >>> print(found.labelling)
    2 events, made of observations
    cyanroom: cyanroom
    orangeroom: orangeroom
    >>> found.inferred.transition.states, found.inferred.reward.states
    (2, 2)
    """
    if len(traces) == 0:
        raise TraceError("there are no traces to find events in: collect or read at least one")
    if not outputs:
        raise OptionError("outputs is empty: name what machines should predict, such as 'reward'")
    if not effort > 0:
        raise OptionError(f"effort is {effort}: choose a number above 0")
    finest = Events(Labelling("action+observation"), LabelTiming.CURRENT_WITH_INITIAL)
    if _contradicts(finest.labelling.on(traces), outputs):  # then fewer labels do, too
        return FoundEvents(*finest, infer(finest.labelling.on(traces), finest.timing))
    for few, states in candidates(traces, outputs, seed, effort, time_left):
        with suppress(ContradictoryTraces):
            return FoundEvents(*few, infer(few.labelling.on(traces), few.timing), states)
    every: list[FoundEvents[Found]] = []
    for reads in SOURCES[:2]:
        labelling = Labelling(reads)
        if _varies(traces, reads):
            with suppress(ContradictoryTraces):
                inferred = infer(labelling.on(traces), finest.timing)
                every.append(FoundEvents(labelling, finest.timing, inferred))
    if every:
        return min(every, key=lambda one: length(one.inferred))
    return FoundEvents(*finest, infer(finest.labelling.on(traces), finest.timing))


def _contradicts(traces: TraceSet, outputs: Sequence[str]) -> bool:
    """Whether steps that read the same labels from the beginning on are answered differently."""
    histories = Histories.of(traces, LabelTiming.CURRENT_WITH_INITIAL)
    return any(
        find_contradiction(output_samples(traces, histories, predicts)) is not None
        for predicts in outputs
    )


def candidates(
    traces: TraceSet,
    outputs: Sequence[str],
    seed: int,
    effort: float,
    time_left: TimeLeft,
) -> Iterator[tuple[Events, dict[str, int]]]:
    """Yield labellings with few events, made of observations, of actions, and of both.

    Each comes with how many states the events were found with, by output.
    """
    distinct = distinct_traces(traces)
    telling = [reads for reads in SOURCES if _varies(distinct, reads)]
    for reads in telling:
        found = _tables(distinct, Labelling(reads), outputs, Limits(seed, effort, time_left))
        if found is not None:
            states = [table.shape[1] for _, table in found]
            events = events_of(distinct, Labelling(reads), found)
            yield events, dict(zip(outputs, states, strict=True))
        if is_over(time_left):
            break


def _varies(traces: TraceSet, reads: Reads) -> bool:
    """Whether labels made in this way can tell anything that fewer cannot."""
    varied = {"observation": len(traces.observations) > 1, "action": len(traces.actions) > 1}
    return varied.get(reads, all(varied.values()))


def _tables(
    traces: TraceSet, labelling: Labelling, outputs: Sequence[str], limits: Limits
) -> list[tuple[EventSteps, Table]] | None:
    """Find a table for each output; none if some output is not explained."""
    found: list[tuple[EventSteps, Table]] = []
    observed: Codes | None = None
    for predicts in outputs:
        steps = event_steps(traces, labelling, predicts, observed)
        table = _known_events(steps, found, limits)
        if table is None:
            table = best_table(steps, limits)
        if steps.surprises(table):
            return None
        found.append((steps, table))
        if predicts == OBSERVATION:
            seen = traces.at_step(traces.observation_codes)
            states = table.shape[1]
            _, observed = distinct_pairs(
                seen, steps.states(table), len(traces.observations), states
            )
    return found


def _known_events(
    steps: EventSteps, found: Sequence[tuple[EventSteps, Table]], limits: Limits
) -> Table | None:
    """Explain an output by the classes of events that an earlier one has, if that can be done."""
    for earlier, moves in found:
        classes = class_codes(earlier, moves)
        count = int(classes.max(initial=-1)) + 1
        if not count or not steps.answers:
            continue
        table = best_table(steps.read_as(classes), limits)
        table = np.concatenate([table, np.arange(table.shape[1])[None]])  # of no class
        begun = np.where(classes == NONE, NONE, classes + count)
        spread: Table = table[np.concatenate([classes, begun])]
        if not steps.surprises(spread):
            return spread
    return None


def best_table(steps: EventSteps, limits: Limits) -> Table:
    """Return the table of moves with which all steps have the shortest description found."""
    nothing = np.zeros((steps.sources, 1), np.int64)
    if not steps.answers:
        return nothing
    ways = [_grown_tables] if steps.sources * steps.answers <= _LARGEST else []
    if len(steps.telling) >= _DENSE * len(steps.source):
        ways.insert(0 if len(steps.telling) >= _MANY else len(ways), _mixed_tables)
    description = Description(steps)
    best, length = nothing, np.inf
    for way in ways:
        for table in way(steps, limits):
            other = description.of(table, steps.told(table))
            if other < length:
                best, length = table, other
            if not steps.surprises(table):
                return best
    return best


def _grown_tables(steps: EventSteps, limits: Limits) -> Iterator[Table]:
    """Grow tables on some traces, and the best of them, if it does not explain all, on all."""
    few = steps.sources <= 2 * _FEW
    work = int(limits.effort * _WORK) // (_ATTEMPTS if few else 1)
    some = steps.first(_GROWN)
    grown = []
    for attempt in range(1 if few else _ATTEMPTS):
        number = _ATTEMPTS * limits.seed + attempt
        grown.append(grown_table(some, seed=number, work=work, time_left=limits.time_left))
        if not some.surprises(grown[-1].table):
            break
        yield grown[-1].table
    best = min(grown, key=lambda one: one.length).table
    yield best
    if len(some.offsets) < len(steps.offsets):
        yield grown_table(
            steps, seed=limits.seed, work=work, start=best, time_left=limits.time_left
        ).table


def _mixed_tables(steps: EventSteps, limits: Limits) -> Iterator[Table]:
    """Mix classes on some traces, and then on all."""
    rounds = max(1, int(limits.effort * _ROUNDS))
    some = steps.first(_SAMPLE)
    for states, classes in _MIXED:
        random = np.random.default_rng(limits.seed)
        mixture = first_mixture(some, states=states, classes=classes, random=random)
        mixture = mixed(some, mixture, rounds, time_left=limits.time_left)
        yield mixture.table
        if len(some.offsets) < len(steps.offsets):
            yield mixed(steps, mixture, rounds, warming=0, time_left=limits.time_left).table
