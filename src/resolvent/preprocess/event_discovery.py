"""Event discovery: traces without labels → the labels that explain them best.

For each output, `event_search` finds a table of moves over the sources of labels. Sources that
move a state are events, and those that act alike get the same label.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import ContradictoryTraces, OptionError, TraceError
from resolvent.preprocess.contradictions import find_contradiction
from resolvent.preprocess.event_search import SearchLimits, best_table
from resolvent.preprocess.event_steps import (
    EventSteps,
    Table,
    TimeLeft,
    distinct_traces,
    event_steps,
    is_over,
)
from resolvent.preprocess.labeling import LabelingFunction, LabelOrigin
from resolvent.preprocess.samples import Histories, output_samples
from resolvent.preprocess.timing import NONE, LabelTiming
from resolvent.traces.schema import OBSERVATION
from resolvent.traces.symbols import Symbol, symbol_order
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, distinct_pairs

Inferred = TypeVar("Inferred")

SOURCES: Final[tuple[LabelOrigin, ...]] = ("observation", "action", "action+observation")
"""Sources of labels, in the order of trial."""

UNMET: Final = -1  # next state of a source that was never read in a state
_MAX_LETTERS: Final = 24
"""Maximum length of the names of two members for the name of a class to contain both."""


class DerivedLabels(NamedTuple):
    """Derived labels, and the timing that says whether those of first observations are read."""

    labelling: LabelingFunction
    timing: LabelTiming


@dataclass(frozen=True)
class DiscoveredLabels(Generic[Inferred]):
    """Discovered labels, when they are read, and the result of inference with them.

    `states` has the number of states that explain each output, an upper bound for its machine;
    empty if each source is a separate label.
    """

    labelling: LabelingFunction
    timing: LabelTiming
    inferred: Inferred
    states: Mapping[str, int] = field(default_factory=dict)


def discover_labels(
    traces: TraceSet,
    outputs: Sequence[str],
    infer: Callable[[TraceSet, LabelTiming], Inferred],
    *,
    length: Callable[[Inferred], float] = lambda inferred: 0.0,
    seed: int = 0,
    effort: float = 1.0,
    time_left: TimeLeft = lambda: None,
) -> DiscoveredLabels[Inferred]:
    """Discover the labels with which machines explain all outputs.

    Labels recorded in the traces are ignored. `infer` takes labeled traces and the label timing,
    and raises `ContradictoryTraces` if no machines explain them. If a few events do not explain
    all outputs, each observation or each action is a label, whichever has the inferred result of
    smaller `length`, or else each pair of both. If these fail, too, their contradiction is raised.

    >>> import gymnasium as gym, resolvent as rs
    >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=50, seed=0)
    >>> infer = lambda labeled, timing: rs.infer(labeled, timing=timing, noise="none").machines
    >>> discovered = discover_labels(traces, ["observation", "reward"], infer)
    >>> print(discovered.labelling)
    2 events, made of observations
    cyanroom: cyanroom
    orangeroom: orangeroom
    >>> discovered.inferred.transition.states, discovered.inferred.reward.states
    (2, 2)
    """
    if len(traces) == 0:
        raise TraceError("there are no traces to find events in: collect or read at least one")
    if not outputs:
        raise OptionError("outputs is empty: name what machines should predict, such as 'reward'")
    if not effort > 0:
        raise OptionError(f"effort is {effort}: choose a number above 0")

    def inferred_with(
        labelling: LabelingFunction, timing: LabelTiming, states: Mapping[str, int] | None = None
    ) -> DiscoveredLabels[Inferred]:
        return DiscoveredLabels(
            labelling, timing, infer(labelling.on(traces), timing), states or {}
        )

    finest = LabelingFunction("action+observation"), LabelTiming.CURRENT_WITH_INITIAL
    if _contradict(finest[0].on(traces), outputs):  # then fewer labels do, too
        return inferred_with(*finest)
    for events, states in candidates(traces, outputs, seed, effort, time_left):
        with suppress(ContradictoryTraces):
            return inferred_with(*events, states)
    results: list[DiscoveredLabels[Inferred]] = []
    for reads in SOURCES[:2]:
        if _varies(traces, reads):
            with suppress(ContradictoryTraces):
                results.append(inferred_with(LabelingFunction(reads), finest[1]))
    if results:
        return min(results, key=lambda result: length(result.inferred))
    return inferred_with(*finest)


def _contradict(traces: TraceSet, outputs: Sequence[str]) -> bool:
    """Return whether steps with the same label history have different outputs."""
    histories = Histories.of(traces, LabelTiming.CURRENT_WITH_INITIAL)
    samples = (output_samples(traces, histories, predicts) for predicts in outputs)
    return any(find_contradiction(rows) is not None for rows in samples)


def candidates(
    traces: TraceSet,
    outputs: Sequence[str],
    seed: int,
    effort: float,
    time_left: TimeLeft,
) -> Iterator[tuple[DerivedLabels, dict[str, int]]]:
    """Yield events among observations, among actions, and among pairs of both.

    Each comes with the number of states by output.
    """
    distinct = distinct_traces(traces)
    for reads in SOURCES:
        if not _varies(distinct, reads):
            continue
        limits = SearchLimits(seed, effort, time_left)
        tables = _tables(distinct, LabelingFunction(reads), outputs, limits)
        if tables is not None:
            states = [table.shape[1] for _, table in tables]
            events = events_of(distinct, LabelingFunction(reads), tables)
            yield events, dict(zip(outputs, states, strict=True))
        if is_over(time_left):
            break


def _varies(traces: TraceSet, reads: LabelOrigin) -> bool:
    """Return whether labels derived in this way carry more information than simpler ones."""
    varies = {"observation": len(traces.observations) > 1, "action": len(traces.actions) > 1}
    return varies.get(reads, all(varies.values()))


def _tables(
    traces: TraceSet, labelling: LabelingFunction, outputs: Sequence[str], limits: SearchLimits
) -> list[tuple[EventSteps, Table]] | None:
    """Find a table for each output; None if some output is not explained."""
    tables: list[tuple[EventSteps, Table]] = []
    observed: Codes | None = None
    for predicts in outputs:
        steps = event_steps(traces, labelling, predicts, observed)
        table = _table_of_earlier_events(steps, tables, limits)
        if table is None:
            table = best_table(steps, limits)
        if steps.count_unexplained(table):
            return None
        tables.append((steps, table))
        if predicts == OBSERVATION:
            observations = traces.at_step(traces.observation_codes)
            _, observed = distinct_pairs(
                observations, steps.states(table), len(traces.observations), table.shape[1]
            )
    return tables


def _table_of_earlier_events(
    steps: EventSteps, tables: Sequence[tuple[EventSteps, Table]], limits: SearchLimits
) -> Table | None:
    """Explain an output by the classes of events of an earlier one; None if that fails."""
    for earlier, moves in tables:
        classes = class_codes(earlier, moves)
        n_classes = int(classes.max(initial=-1)) + 1
        if not n_classes or not steps.n_outputs:
            continue
        of_classes = best_table(steps.read_as(classes), limits)
        stay = np.arange(of_classes.shape[1])
        of_classes = np.concatenate([of_classes, stay[None]])  # the last row is that of `NONE`
        of_starts = np.where(classes == NONE, NONE, classes + n_classes)
        table: Table = of_classes[np.concatenate([classes, of_starts])]
        if not steps.count_unexplained(table):
            return table
    return None


def events_of(
    traces: TraceSet, labelling: LabelingFunction, tables: Sequence[tuple[EventSteps, Table]]
) -> DerivedLabels:
    """Return the sources that move a state as events, with a label for each class.

    `tables` has the steps and the table of each output. Sources form a class if they never
    contradict each other and move some state to the same target.
    """
    sources, _ = labelling.sources(traces)
    rows = np.concatenate([_met_rows(steps, table) for steps, table in tables], axis=1)
    stay = np.concatenate([np.arange(table.shape[1]) for _, table in tables])
    initial = np.flatnonzero(stay == 0)
    after_step, at_start = rows[: len(sources)].copy(), rows[len(sources) :]
    from_initial = at_start[:, initial]  # at a start, sources are read in state 0 only
    is_start = (from_initial != UNMET).any(1)
    if not (from_initial > 0).any():
        events = _named(labelling, sources, _classes(after_step, stay))
        is_read = any(sources[index] in events for index in np.flatnonzero(is_start))
        timing = LabelTiming.CURRENT if is_read else LabelTiming.CURRENT_WITH_INITIAL
        return DerivedLabels(LabelingFunction(labelling.reads, events), timing)
    timing = LabelTiming.CURRENT_WITH_INITIAL
    is_in_both = (after_step[:, initial] != UNMET) & is_start[:, None]
    differs = is_in_both & (after_step[:, initial] != from_initial)
    if labelling.reads != "observation" or not differs.any():
        after_step[np.ix_(is_start, initial)] = from_initial[is_start]
        events = _named(labelling, sources, _classes(after_step, stay))
        return DerivedLabels(LabelingFunction(labelling.reads, events), timing)
    # Pairs of action and observation distinguish starts from steps.
    classes = _classes(np.concatenate([after_step, at_start]), stay)
    class_of = {index: number for number, members in enumerate(classes) for index in members}
    index_of = {source: index for index, source in enumerate(sources)}
    pairs = LabelingFunction("action+observation")
    members: list[list[int]] = [[] for _ in classes]
    pair_sources = pairs.sources(traces)[0]
    for number, pair in enumerate(pair_sources):
        index = index_of[pair[-1]] + len(sources) * (len(pair) == 1)  # type: ignore[index, arg-type]
        if index in class_of:
            members[class_of[index]].append(number)
    events = _named(pairs, pair_sources, [numbers for numbers in members if numbers])
    return DerivedLabels(LabelingFunction(pairs.reads, events), timing)


def class_codes(steps: EventSteps, table: Table) -> NDArray[np.int64]:
    """Return the class of each source after a step, `NONE` if it is no event."""
    rows = _met_rows(steps, table)[: steps.n_sources // 2]
    codes = np.full(len(rows), NONE)
    for number, members in enumerate(_classes(rows, np.arange(table.shape[1]))):
        codes[members] = number
    return codes


def _met_rows(steps: EventSteps, table: Table) -> Table:
    return np.where(steps.read_counts(table) > 0, table, UNMET)


def _classes(rows: Table, stay: NDArray[np.int64]) -> list[list[int]]:
    """Return the indices of the rows that change a state, in classes of consistent rows."""
    is_move = (rows != UNMET) & (rows != stay)
    order = np.lexsort([np.arange(len(rows)), -(rows != UNMET).sum(1), -is_move.sum(1)])
    class_rows: list[NDArray[np.int64]] = []
    classes: list[list[int]] = []
    for index in order[is_move[order].any(1)].tolist():
        row = rows[index]
        for number, class_row in enumerate(class_rows):
            both = (row != UNMET) & (class_row != UNMET)
            if (row == class_row)[both].all() and (both & is_move[index]).any():
                class_rows[number] = np.where(class_row == UNMET, row, class_row)
                classes[number].append(index)
                break
        else:
            class_rows.append(row)
            classes.append([index])
    return classes


def _named(
    labelling: LabelingFunction, sources: Sequence[Symbol], classes: list[list[int]]
) -> dict[Symbol, str]:
    """Return the label of each source in a class, composed of the names of its members."""
    events: dict[Symbol, str] = {}
    for indices in classes:
        members = sorted((sources[index] for index in indices), key=symbol_order)
        name = class_name([labelling.name_of(member) for member in members])
        events |= dict.fromkeys(members, name)
    return events


def class_name(names: Sequence[str]) -> str:
    """Return the name of a class; classes without a common member have different names.

    >>> class_name(["key"]), class_name(["key", "lamp"]), class_name(["key", "lamp", "rope"])
    ('key', 'key or lamp', 'key or 2 others')
    """
    first, *rest = names
    if not rest:
        return first
    if len(rest) == 1 and len(first) + len(rest[0]) <= _MAX_LETTERS:
        return f"{first} or {rest[0]}"
    return f"{first} or {len(rest)} other{'s' * (len(rest) > 1)}"
