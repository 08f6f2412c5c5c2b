"""Reading an automaton off transitions that are made by hand.

The places are a hall without a label, one with a key and one with a door; the task
is to get the key and then to the door.
"""

import numpy as np
import pytest

from resolvent.paper.baselines.hmm_distillation import distil
from resolvent.paper.baselines.reach_task import ReachTask

NO_EVENT, KEY, DOOR = frozenset(), frozenset({"key"}), frozenset({"door"})
HALL_AT, KEY_AT, DOOR_AT = range(3)
END = 2

# From (layer, place) to (layer, place): every place leads to every other.
RIGHT = {
    **{((0, place), (0, to)): 0.3 for place in (HALL_AT, DOOR_AT) for to in (HALL_AT, DOOR_AT)},
    **{((0, place), (1, KEY_AT)): 0.4 for place in (HALL_AT, DOOR_AT)},
    **{((1, place), (1, to)): 0.3 for place in (HALL_AT, KEY_AT) for to in (HALL_AT, KEY_AT)},
    **{((1, place), (END, DOOR_AT)): 0.4 for place in (HALL_AT, KEY_AT)},
}


def read_off(edges, *, starts=(HALL_AT,), labels=(NO_EVENT, KEY, DOOR), irrelevant=(NO_EVENT,)):
    places = len(labels)
    transitions = np.zeros((3 * places, 3 * places))
    for (layer, place), (to_layer, to) in edges:
        transitions[layer * places + place, to_layer * places + to] = edges[
            (layer, place), (to_layer, to)
        ]
    task = ReachTask(
        places=np.array([place for start in starts for place in (start, 0)], np.int32),
        offsets=np.arange(len(starts) + 1),
        paid=np.ones(len(starts), bool),
        labels=labels,
        reward=2.0,
    )
    return distil(transitions, task, threshold=1e-3, irrelevant=irrelevant)


def table(machine):
    """All that a machine does with single labels, as {(state, label): (state, reward)}."""
    return {
        (state, name): machine.step(state, {name} if name else set())
        for state in sorted(machine.states - machine.terminal)
        for name in ("", "key", "door")
    }


KEY_THEN_DOOR = {
    (0, ""): (0, 0.0),
    (0, "key"): (1, 0.0),
    (0, "door"): (0, 0.0),
    (1, ""): (1, 0.0),
    (1, "key"): (1, 0.0),
    (1, "door"): (2, 2.0),
}


def test_the_task_is_read_off_its_own_transitions():
    distilled = read_off(RIGHT)
    assert table(distilled.machine) == KEY_THEN_DOOR
    assert distilled.machine.terminal == {2}
    assert distilled.contradiction is None
    assert distilled.edges == len(RIGHT)


def test_transitions_below_the_threshold_are_noise():
    noisy = RIGHT | {((0, HALL_AT), (1, HALL_AT)): 9e-4}
    assert table(read_off(noisy).machine) == KEY_THEN_DOOR


def test_states_that_nothing_leads_to_do_not_count():
    # Layer 1 at the door would contradict the end; only layer 0 at the key, unreached, leads there.
    unreached = RIGHT | {((0, KEY_AT), (1, DOOR_AT)): 0.5, ((1, DOOR_AT), (0, HALL_AT)): 1.0}
    assert table(read_off(unreached).machine) == KEY_THEN_DOOR


def test_cone_lumping_merges_what_one_label_leads_to():
    # The unused state of layer 1 at the door doubles that of layer 0.
    doubled = RIGHT | {
        ((0, HALL_AT), (1, DOOR_AT)): 0.05,
        ((1, DOOR_AT), (0, HALL_AT)): 0.5,
        ((1, DOOR_AT), (1, KEY_AT)): 0.5,
    }
    distilled = read_off(doubled)
    assert table(distilled.machine) == KEY_THEN_DOOR
    assert distilled.merged_by_label == 1


def test_traces_may_begin_in_several_places_and_their_first_label_is_not_read():
    begins_at_key = RIGHT | {
        ((0, KEY_AT), (0, HALL_AT)): 0.5,
        ((0, KEY_AT), (1, KEY_AT)): 0.5,
    }
    distilled = read_off(begins_at_key, starts=(KEY_AT, HALL_AT))
    assert table(distilled.machine) == KEY_THEN_DOOR


def test_a_layer_that_leaks_contradicts_itself():
    leaking = RIGHT | {((0, HALL_AT), (1, HALL_AT)): 2e-3}
    distilled = read_off(leaking)
    assert distilled.machine is None
    assert distilled.contradiction == "after one history, 'door' both ends the task and does not"


def test_an_irrelevant_label_cannot_end_the_task():
    distilled = read_off(RIGHT, irrelevant=(NO_EVENT, DOOR))
    assert distilled.machine is None
    assert "'door' both ends" in distilled.contradiction


def test_places_become_states_where_no_label_is_irrelevant_until_they_are_folded():
    distilled = read_off(RIGHT, irrelevant=())
    assert table(distilled.machine) == KEY_THEN_DOOR
    assert distilled.merged_as_irrelevant == 0
    # Hall and door in layer 0, hall and key in layer 1: one is left of each two.
    assert distilled.folded == 2


def test_a_place_that_few_labels_follow_is_folded_and_keeps_what_it_knows():
    # From the lamp, in layer 1, there is no way but to the door: it has no edge without a label.
    lamp = frozenset({"lamp"})
    edges = RIGHT | {((1, KEY_AT), (1, 3)): 0.1, ((1, 3), (END, DOOR_AT)): 1.0}
    distilled = read_off(edges, labels=(NO_EVENT, KEY, DOOR, lamp))
    machine = distilled.machine
    assert distilled.folded == 1
    assert machine.step(1, {"lamp"}) == (1, 0.0)
    assert machine.step(1, {"door"}) == (2, 2.0)


def test_a_place_that_is_never_left_is_no_end():
    stuck = {((0, HALL_AT), (0, DOOR_AT)): 0.5, ((0, HALL_AT), (END, KEY_AT)): 0.5}
    machine = read_off(stuck).machine
    assert machine.step(0, {"door"})[1] == 0
    assert not machine.has_ended(machine.step(0, {"door"})[0])
    assert machine.step(0, {"key"}) == (1, 2.0)


@pytest.mark.parametrize("starts", [(HALL_AT,), (HALL_AT, DOOR_AT)])
def test_without_a_likely_transition_nothing_is_known(starts):
    machine = read_off({}, starts=starts).machine
    assert machine.edges == ()
    assert machine.terminal == {1}


def test_what_a_fold_forces_is_folded_too_or_the_fold_is_refused():
    # Label by label: a chain of lamps, the last one leads to the end by the key in one branch
    # only. So the lamps of the two branches stay apart, and all else is one.
    labels = tuple(frozenset({name}) for name in ("a", "b", "lamp", "key"))
    start, other, lamp, key = range(4)
    edges = {
        ((0, start), (0, start)): 0.2,
        ((0, start), (0, other)): 0.4,
        ((0, start), (0, lamp)): 0.4,
        ((0, lamp), (0, key)): 1.0,
        ((0, other), (1, lamp)): 1.0,
        ((1, lamp), (END, key)): 1.0,
    }
    distilled = read_off(edges, labels=labels, irrelevant=())
    machine = distilled.machine

    def run(*names):
        state, paid = machine.initial, 0.0
        for name in names:
            state, paid = machine.step(state, {name})
        return machine.has_ended(state), paid

    assert run("b", "lamp", "key") == (True, 2.0)
    assert run("lamp", "key") == (False, 0.0)
    assert run("a", "a", "b", "lamp", "key") == (True, 2.0)
    # Of start, other, the two lamps and the key without an end, two are left.
    assert len(machine.states) - 1 == 2
    assert distilled.folded == 3
