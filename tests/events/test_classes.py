"""Tables → labellings, each worked out by hand."""

import numpy as np

from resolvent.events.classes import events_of
from resolvent.events.steps import event_steps
from resolvent.samples import LabelTiming
from resolvent.traces import Trace, TraceSet
from resolvent.traces.labelling import Labelling


def walks(*observations):
    return TraceSet(
        [Trace(list(seen), [None] * len(seen), ["go"] * (len(seen) - 1)) for seen in observations]
    )


def events(traces, moves, begins=(), states=2):
    """Make a table of moves by observation, those at the beginning apart."""
    names = list(traces.observations)
    table = np.tile(np.arange(states), (2 * len(names), 1))
    for name, row in dict(moves).items():
        table[names.index(name)] = row
    for name, row in dict(begins).items():
        table[names.index(name) + len(names)] = row
    labelling = Labelling("observation")
    return events_of(traces, labelling, [(event_steps(traces, labelling, "observation"), table)])


def test_sources_with_the_same_moves_are_one_class():
    found = events(walks("saxbyabx"), {"a": [1, 1], "b": [1, 1], "x": [0, 0]})
    assert found.labelling == Labelling("observation", {"a": "a or b", "b": "a or b", "x": "x"})
    assert found.timing is LabelTiming.CURRENT_WITH_INITIAL


def test_moves_that_were_never_made_keep_nothing_apart():
    """In state 1 "b" is never read, so that it stays there says nothing."""
    found = events(walks("sasas", "sbs"), {"a": [1, 0], "b": [1, 1]})
    assert found.labelling.events == {"a": "a or b", "b": "a or b"}


def test_a_move_that_was_never_made_is_no_event():
    assert events(walks("sas"), {"a": [0, 0]}).labelling.events == {}


def test_a_beginning_that_does_not_count_is_not_read():
    found = events(walks("aas", "saas"), {"a": [1, 1]})
    assert found.labelling.events == {"a": "a"}
    assert found.timing is LabelTiming.CURRENT


def test_a_beginning_that_moves_is_read():
    found = events(walks("csss", "dsss"), {}, {"c": [1, 1]})
    assert found.labelling.events == {"c": "c"}
    assert found.timing is LabelTiming.CURRENT_WITH_INITIAL


def test_a_beginning_that_acts_in_its_own_way_has_a_label_of_its_own():
    """Read later, "c" moves nothing, although it does so at the beginning; "a" the reverse."""
    found = events(walks("csss", "scss", "assa", "sass"), {"a": [1, 1]}, {"c": [1, 1]})
    assert found.labelling.reads == "action+observation"
    assert found.labelling.events == {("c",): "→ c or go → a", ("go", "a"): "→ c or go → a"}
    assert found.timing is LabelTiming.CURRENT_WITH_INITIAL
