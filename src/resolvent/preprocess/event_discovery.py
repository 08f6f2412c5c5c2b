"""Event discovery: traces without labels → candidates for labels that explain them.

For each output, `event_search` finds a transition table over the sources of labels. Sources that
change a state are events, and those that act alike get the same label.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import OptionError, TraceError
from resolvent.preprocess.event_search import SearchOptions, best_table
from resolvent.preprocess.event_steps import (
    EventSteps,
    Table,
    event_steps,
    unlabeled_distinct_traces,
)
from resolvent.preprocess.labeling import LabelingFunction, LabelOrigin
from resolvent.preprocess.samples import Histories, find_contradiction, output_samples, supplement
from resolvent.preprocess.timing import NONE, LabelTiming
from resolvent.traces.schema import OBSERVATION
from resolvent.traces.symbols import Symbol, symbol_order
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes

SOURCES: Final[tuple[LabelOrigin, ...]] = ("observation", "action", "action+observation")
"""Sources of labels, in the order of trial."""

UNREAD: Final = -1  # next state of a source that was never read in a state
_MAX_LETTERS: Final = 24  # maximum length of two members' names for a class named after both


class LabelCandidate(NamedTuple):
    """Labels derived from steps, and the timing that says whether those of first steps are read.

    `states` has the number of states that explain each output, an upper bound for its machine;
    empty if each source is a separate label.
    """

    labeling: LabelingFunction
    timing: LabelTiming
    states: Mapping[str, int] = MappingProxyType({})


def label_candidates(
    traces: TraceSet,
    outputs: Sequence[str],
    *,
    seed: int = 0,
    effort: float = 1.0,
    in_time: Callable[[], bool] = lambda: True,
) -> Iterator[list[LabelCandidate]]:
    """Yield groups of labelings with which machines may explain all outputs, the best groups first.

    Choose from the first group that has such machines, the candidate with the shortest ones. First
    come a few events, then each observation or action as a label, then each pair of both: if that
    fails, too, no labels explain these traces. Recorded labels are ignored.
    """
    if len(traces) == 0:
        raise TraceError("there are no traces to find events in: collect or read at least one")
    if not outputs:
        raise OptionError("outputs is empty: name what machines should predict, such as 'reward'")
    if not effort > 0:
        raise OptionError(f"effort is {effort}: choose a number above 0")
    timing = LabelTiming.CURRENT_WITH_INITIAL
    finest = LabelCandidate(LabelingFunction("action+observation"), timing)
    labeled = finest.labeling.transform(traces)
    histories = Histories.of(labeled, timing)
    samples = (output_samples(labeled, histories, predicts) for predicts in outputs)
    if all(find_contradiction(rows) is None for rows in samples):  # else fewer labels fail, too
        for candidate in event_candidates(traces, outputs, SearchOptions(seed, effort, in_time)):
            yield [candidate]
        yield [
            LabelCandidate(LabelingFunction(reads), timing)
            for reads in SOURCES[:2]
            if _varies(traces, reads)
        ]
    yield [finest]


def event_candidates(
    traces: TraceSet, outputs: Sequence[str], options: SearchOptions
) -> Iterator[LabelCandidate]:
    """Yield events among observations, among actions, and among pairs of both."""
    distinct = unlabeled_distinct_traces(traces)
    for reads in (reads for reads in SOURCES if _varies(distinct, reads)):
        tables = _tables(distinct, LabelingFunction(reads), outputs, options)
        if tables is not None:
            labeling, timing = events_of(distinct, LabelingFunction(reads), tables)
            states = [table.shape[1] for _, table in tables]
            yield LabelCandidate(labeling, timing, dict(zip(outputs, states, strict=True)))
        if not options.in_time():
            break


def _varies(traces: TraceSet, reads: LabelOrigin) -> bool:
    """Return whether labels derived in this way carry more information than simpler ones."""
    varies = {"observation": len(traces.observations) > 1, "action": len(traces.actions) > 1}
    return varies.get(reads, all(varies.values()))


def _tables(
    traces: TraceSet, labeling: LabelingFunction, outputs: Sequence[str], options: SearchOptions
) -> list[tuple[EventSteps, Table]] | None:
    """Find a table for each output; None if some output is not explained."""
    tables: list[tuple[EventSteps, Table]] = []
    observed: Codes | None = None
    for predicts in outputs:
        steps = event_steps(traces, labeling, predicts, observed)
        table = _table_of_earlier_events(steps, tables, options)
        table = best_table(steps, options) if table is None else table
        if steps.count_unexplained(table):
            return None
        tables.append((steps, table))
        if predicts == OBSERVATION:
            _, observed = supplement(traces, steps.states(table))
    return tables


def _table_of_earlier_events(
    steps: EventSteps, tables: Sequence[tuple[EventSteps, Table]], options: SearchOptions
) -> Table | None:
    """Explain an output by the classes of events of an earlier one; None if that fails."""
    for earlier, earlier_table in tables:
        classes = class_codes(earlier, earlier_table)
        n_classes = int(classes.max(initial=-1)) + 1
        if not n_classes or not steps.n_outputs:
            continue
        of_classes = best_table(steps.read_as(classes), options)
        stay = np.arange(of_classes.shape[1])
        of_classes = np.concatenate([of_classes, stay[None]])  # the last row is that of `NONE`
        of_starts = np.where(classes == NONE, NONE, classes + n_classes)
        table: Table = of_classes[np.concatenate([classes, of_starts])]
        if not steps.count_unexplained(table):
            return table
    return None


def events_of(
    traces: TraceSet, labeling: LabelingFunction, tables: Sequence[tuple[EventSteps, Table]]
) -> tuple[LabelingFunction, LabelTiming]:
    """Return the sources that change a state as events, with a label for each class.

    `tables` has the steps and the table of each output. Sources form a class if they never
    contradict each other and lead from some state to the same target.
    """
    sources, _ = labeling.sources(traces)
    rows = np.concatenate([_read_rows(steps, table) for steps, table in tables], axis=1)
    stay = np.concatenate([np.arange(table.shape[1]) for _, table in tables])
    initial = np.flatnonzero(stay == 0)
    after_step, at_start = rows[: len(sources)].copy(), rows[len(sources) :]
    from_initial = at_start[:, initial]  # at a start, sources are read in state 0 only
    is_start = (from_initial != UNREAD).any(1)
    if not (from_initial > 0).any():
        events = _named(labeling, sources, _classes(after_step, stay))
        is_read = any(sources[index] in events for index in np.flatnonzero(is_start))
        timing = LabelTiming.CURRENT if is_read else LabelTiming.CURRENT_WITH_INITIAL
        return LabelingFunction(labeling.reads, events), timing
    timing = LabelTiming.CURRENT_WITH_INITIAL
    is_in_both = (after_step[:, initial] != UNREAD) & is_start[:, None]
    differs = is_in_both & (after_step[:, initial] != from_initial)
    if labeling.reads != "observation" or not differs.any():
        after_step[np.ix_(is_start, initial)] = from_initial[is_start]
        events = _named(labeling, sources, _classes(after_step, stay))
        return LabelingFunction(labeling.reads, events), timing
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
    return LabelingFunction(pairs.reads, events), timing


def class_codes(steps: EventSteps, table: Table) -> NDArray[np.int64]:
    """Return the class of each source after a step, `NONE` if it is no event."""
    rows = _read_rows(steps, table)[: steps.n_sources // 2]
    codes = np.full(len(rows), NONE)
    for number, members in enumerate(_classes(rows, np.arange(table.shape[1]))):
        codes[members] = number
    return codes


def _read_rows(steps: EventSteps, table: Table) -> Table:
    return np.where(steps.read_counts(table) > 0, table, UNREAD)


def _classes(rows: Table, stay: NDArray[np.int64]) -> list[list[int]]:
    """Return the indices of the rows that change a state, in classes of consistent rows."""
    changes = (rows != UNREAD) & (rows != stay)
    order = np.lexsort([np.arange(len(rows)), -(rows != UNREAD).sum(1), -changes.sum(1)])
    class_rows: list[NDArray[np.int64]] = []
    classes: list[list[int]] = []
    for index in order[changes[order].any(1)].tolist():
        row = rows[index]
        for number, class_row in enumerate(class_rows):
            both = (row != UNREAD) & (class_row != UNREAD)
            if (row == class_row)[both].all() and (both & changes[index]).any():
                class_rows[number] = np.where(class_row == UNREAD, row, class_row)
                classes[number].append(index)
                break
        else:
            class_rows.append(row)
            classes.append([index])
    return classes


def _named(
    labeling: LabelingFunction, sources: Sequence[Symbol], classes: list[list[int]]
) -> dict[Symbol, str]:
    """Return the label of each source in a class, composed of the names of its members."""
    events: dict[Symbol, str] = {}
    for indices in classes:
        members = sorted((sources[index] for index in indices), key=symbol_order)
        name = class_name([labeling.source_name(member) for member in members])
        events |= dict.fromkeys(members, name)
    return events


def class_name(names: Sequence[str]) -> str:
    """Return the name of a class; classes without a common member have different names."""
    first, *rest = names
    if not rest:
        return first
    if len(rest) == 1 and len(first) + len(rest[0]) <= _MAX_LETTERS:
        return f"{first} or {rest[0]}"
    return f"{first} or {len(rest)} other{'s' * (len(rest) > 1)}"
