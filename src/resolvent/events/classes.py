"""Tables of moves → a labelling: which sources are events, and which of them act alike."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.events.steps import EventSteps, Table
from resolvent.samples import NONE, LabelTiming
from resolvent.traces import TraceSet
from resolvent.traces.labelling import Labelling
from resolvent.traces.symbols import Symbol, symbol_order

UNMET: Final = -1
"""In a row of moves: the source was never read in this state, so nobody knows."""

_SHORT: Final = 24
"""Names of both members make the name of a class if they have no more letters together."""


class Events(NamedTuple):
    """How labels are made, and whether those of first observations are read."""

    labelling: Labelling
    timing: LabelTiming


def events_of(
    traces: TraceSet, labelling: Labelling, found: Sequence[tuple[EventSteps, Table]]
) -> Events:
    """Put sources that move a state in classes that act alike, and name these.

    `found` has the steps and the table for each output. Sources that never contradict
    each other, and move some state to the same one, are of one class.
    """
    names, _ = labelling.sources(traces)
    rows = np.concatenate([_met_rows(steps, table) for steps, table in found], axis=1)
    stay = np.concatenate([np.arange(table.shape[1]) for _, table in found])
    firsts = np.flatnonzero(stay == 0)
    later, begun = rows[: len(names)].copy(), rows[len(names) :]
    at_first = begun[:, firsts]  # a beginning is read in state 0 and nowhere else
    begins_move = (at_first > 0).any(1)
    begins = (at_first != UNMET).any(1)
    if not begins_move.any():
        events = _named(labelling, names, _classes(later, stay))
        count = any(names[place] in events for place in np.flatnonzero(begins))
        timing = LabelTiming.CURRENT if count else LabelTiming.CURRENT_WITH_INITIAL
        return Events(Labelling(labelling.reads, events), timing)
    known = (later[:, firsts] != UNMET) & begins[:, None]
    if labelling.reads != "observation" or not (known & (later[:, firsts] != at_first)).any():
        later[np.ix_(begins, firsts)] = at_first[begins]
        events = _named(labelling, names, _classes(later, stay))
        return Events(Labelling(labelling.reads, events), LabelTiming.CURRENT_WITH_INITIAL)
    return _told_apart(traces, names, _classes(np.concatenate([later, begun]), stay))


def class_codes(steps: EventSteps, table: Table) -> NDArray[np.int64]:
    """Return the class of each source that a step may lead to, `NONE` where it is no event."""
    rows = _met_rows(steps, table)[: steps.sources // 2]
    codes = np.full(len(rows), NONE)
    for number, places in enumerate(_classes(rows, np.arange(table.shape[1]))):
        codes[places] = number
    return codes


def _told_apart(traces: TraceSet, names: list[Symbol], classes: list[list[int]]) -> Events:
    """Make labels of action and observation, so that beginnings are sources of their own."""
    pairs = Labelling("action+observation")
    sources = pairs.sources(traces)[0]
    of_source = {names[place]: place for place in range(len(names))}
    members: list[list[int]] = [[] for _ in classes]
    class_of = {place: number for number, places in enumerate(classes) for place in places}
    for number, pair in enumerate(sources):
        place = of_source[pair[-1]] + len(names) * (len(pair) == 1)  # type: ignore[index, arg-type]
        if place in class_of:
            members[class_of[place]].append(number)
    events = _named(pairs, sources, [places for places in members if places])
    return Events(Labelling(pairs.reads, events), LabelTiming.CURRENT_WITH_INITIAL)


def _met_rows(steps: EventSteps, table: Table) -> Table:
    return np.where(steps.readings(table) > 0, table, UNMET)


def _classes(rows: Table, stay: NDArray[np.int64]) -> list[list[int]]:
    """Return the places of rows that move something, those that act alike together."""
    moved = (rows != UNMET) & (rows != stay)
    order = np.lexsort([np.arange(len(rows)), -(rows != UNMET).sum(1), -moved.sum(1)])
    tables: list[NDArray[np.int64]] = []
    members: list[list[int]] = []
    for place in order[moved[order].any(1)].tolist():
        row = rows[place]
        for number, table in enumerate(tables):
            both = (row != UNMET) & (table != UNMET)
            alike = bool((row == table)[both].all()) and bool((both & moved[place]).any())
            if alike:
                tables[number] = np.where(table == UNMET, row, table)
                members[number].append(place)
                break
        else:
            tables.append(row)
            members.append([place])
    return members


def _named(
    labelling: Labelling, sources: Sequence[Symbol], classes: list[list[int]]
) -> dict[Symbol, str]:
    """Give every class a name made of its members' names."""
    events: dict[Symbol, str] = {}
    for places in classes:
        members = sorted((sources[place] for place in places), key=symbol_order)
        name = class_name([labelling.name_of(one) for one in members])
        events |= dict.fromkeys(members, name)
    return events


def class_name(names: Sequence[str]) -> str:
    """Call a class by its members' names; no two classes that share no member are called alike.

    >>> class_name(["key"]), class_name(["key", "lamp"]), class_name(["key", "lamp", "rope"])
    ('key', 'key or lamp', 'key or 2 others')
    """
    first, *others = names
    if not others:
        return first
    if len(others) == 1 and len(first) + len(others[0]) <= _SHORT:
        return f"{first} or {others[0]}"
    return f"{first} or {len(others)} other{'s' * (len(others) > 1)}"
