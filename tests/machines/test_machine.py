from dataclasses import replace

import numpy as np
import pytest

from resolvent.errors import ModelError
from resolvent.machines import (
    UNSEEN,
    Basis,
    Machine,
    OutputCounts,
    RewardMachine,
    Support,
    TransitionMachine,
    Unseen,
)
from resolvent.machines.io.mealy_dot import to_mealy_dot
from resolvent.machines.tables import OBSERVED_CODE, TableEntry
from resolvent.traces import Vocabulary
from resolvent.traces.vocabulary import codes_of
from resolvent.viz.dot import to_dot, to_mermaid
from resolvent.viz.text import to_text
from resolvent.worlds import House


def lock(kind=TransitionMachine, **changes):
    """A door that a key opens, made by hand: state 0 locked, state 1 open.

    Labels: no event = 0 (trivial), bell = 1, key = 2; the bell was never heard
    in state 1. Queries: (hall, look) = 0, (hall, push) = 1, (room, look) = 2,
    (room, push) = 3. Pushing in the hall depends on the state, looking in the
    hall never changes it, and in the room only state 1 was asked to look.
    """
    tables = {
        "labels": Vocabulary([frozenset(), frozenset({"bell"}), frozenset({"key"})]),
        "observations": Vocabulary(["hall", "room"]),
        "actions": Vocabulary(["look", "push"]),
        "outputs": Vocabulary(["hall", "room"]),
        "transitions": np.array([[0, 0, 1], [1, -1, 1]], np.int32),
        "trivial": (0,),
        "output_state": np.array([0, 1, 1], np.int32),
        "output_query": np.array([1, 1, 2], np.int64),
        "output_value": np.array([0, 1, 1], np.int32),
        "constant_query": np.array([0], np.int64),
        "constant_value": np.array([0], np.int32),
    }
    return kind(**{**tables, **changes})


def test_steps_follow_the_table():
    machine = lock()
    assert machine.states == 2
    assert machine.step(0, {"key"}) == 1
    assert machine.step(0, {"bell"}) == 0
    assert machine.step(1, []) == 1
    assert machine.step(1, {"bell"}) is UNSEEN
    assert machine.step(0, {"gong"}) is UNSEEN
    assert machine.step(0, {"key", "bell"}) is UNSEEN
    assert machine.step(UNSEEN, {"key"}) is UNSEEN


def test_labels_may_come_in_any_form():
    machine = lock()
    for label in ("key", ["key"], ("key",), {"key"}, frozenset({"key"}), np.array(["key"])):
        assert machine.step(0, label) == 1


def test_runs_read_labels_one_after_another():
    machine = lock()
    assert machine.run([]) == 0
    assert machine.run([{"bell"}, {"key"}, []]) == 1
    assert machine.run([{"key"}, {"bell"}, {"key"}]) is UNSEEN  # lost for good
    assert machine.run([{"key"}], state=1) == 1


def test_outputs_depend_on_the_state():
    machine = lock()
    assert machine.output(0, "hall", "push") == "hall"
    assert machine.output(1, "hall", "push") == "room"
    assert machine.output(1, "room", "look") == "room"
    assert machine.output(0, "room", "look") is UNSEEN
    assert machine.output(1, "room", "push") is UNSEEN


def test_constant_outputs_need_no_state():
    machine = lock()
    assert [machine.output(state, "hall", "look") for state in (0, 1, UNSEEN)] == ["hall"] * 3
    assert machine.output(UNSEEN, "hall", "push") is UNSEEN
    assert machine.constant_outputs == {("hall", "look"): "hall"}


def shown(**changes):
    """The lock; looking in the hall was asked for in state 1 alone."""
    asked = {
        "observed_constant_state": np.array([1], np.int32),
        "observed_constant_query": np.array([0], np.int64),
    }
    return lock(**asked, **changes)


def test_an_output_is_observed_generalized_or_unseen():
    machine = shown()
    look = [machine.basis(state, "hall", "look") for state in (0, 1, UNSEEN)]
    assert look == [Basis.GENERALIZED, Basis.OBSERVED, Basis.GENERALIZED]
    push = [machine.basis(state, "hall", "push") for state in (0, 1, UNSEEN)]
    assert push == [Basis.OBSERVED, Basis.OBSERVED, Basis.UNSEEN]
    assert machine.basis(0, "room", "look") is Basis.UNSEEN
    assert machine.basis(0, "attic", "look") is Basis.UNSEEN
    assert machine.basis(0, "hall", "pull") is Basis.UNSEEN
    with pytest.raises(ModelError, match="state 2 does not exist"):
        machine.basis(2, "hall", "look")


def test_generalized_outputs_can_be_excluded():
    machine = shown()
    answers = [machine.output(s, "hall", "look", generalized=False) for s in (0, 1, UNSEEN)]
    assert answers == [UNSEEN, "hall", UNSEEN]
    assert machine.output(1, "hall", "push", generalized=False) == "room"
    assert lock().output(1, "hall", "look", generalized=False) is UNSEEN  # nobody told where it was


def test_unknown_observations_and_actions_are_unseen():
    machine = lock()
    assert machine.output(0, "attic", "push") is UNSEEN
    assert machine.output(0, "hall", "pull") is UNSEEN


@pytest.mark.parametrize("state", [-1, 2, 99])
def test_states_that_do_not_exist_are_refused(state):
    for ask in (
        lambda m: m.step(state, {"key"}),
        lambda m: m.output(state, "hall", "push"),
        lambda m: m.access_sequence(state),
        lambda m: m.run([{"key"}], state),
    ):
        with pytest.raises(ModelError, match=f"state {state} does not exist.* 0 to 1"):
            ask(lock())


def test_unseen_is_not_a_truth_value():
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(UNSEEN)
    assert repr(UNSEEN) == "UNSEEN"
    assert isinstance(UNSEEN, Unseen)


def test_all_outputs_constant_ones_first():
    assert list(lock().entries()) == [
        TableEntry(None, "hall", "look", "hall"),
        TableEntry(0, "hall", "push", "hall"),
        TableEntry(1, "hall", "push", "room"),
        TableEntry(1, "room", "look", "room"),
    ]
    levels = [answer.basis for answer in lock().entries()]
    assert levels == [Basis.GENERALIZED, *[Basis.OBSERVED] * 3]


def test_queries_have_numbers():
    assert [lock().query(number) for number in range(4)] == [
        ("hall", "look"),
        ("hall", "push"),
        ("room", "look"),
        ("room", "push"),
    ]


def test_histories_are_shortest_then_first_in_label_order():
    machine = lock()
    assert machine.access_sequence(0) == ()
    assert machine.access_sequence(1) == (frozenset({"key"}),)
    assert machine.reachable() == [0, 1]
    assert machine.trivial_labels == (frozenset(),)
    # Two ways to state 2: (bell, key) and (key, bell); the first is shorter in no way but earlier.
    both = lock(
        transitions=np.array([[0, 1, 2], [1, 1, 3], [2, 3, 2], [3, 3, 3]], np.int32),
    )
    assert both.access_sequence(3) == (frozenset({"bell"}), frozenset({"key"}))


def test_replay_gives_the_state_at_each_row():
    read = np.array([-1, 2, 0, 1, 2, 2, 7, 2], np.int32)
    states = lock().replay(read, np.array([0, 5, 6, 8], np.int64))
    assert states.tolist() == [0, 1, 1, -1, -1, 1, -1, -1]


@pytest.mark.parametrize("dense", [0, 1 << 24])
def test_many_outputs_at_once(monkeypatch, dense):
    monkeypatch.setattr("resolvent.machines.tables.MAX_TABLE_SIZE", dense)
    states = np.array([0, 1, 0, 1, -1, -1, 0, 1, 1], np.int32)
    queries = np.array([1, 1, 2, 2, 0, 1, 0, 3, -1], np.int64)
    assert lock().predict(states, queries).tolist() == [0, 1, -1, 1, 0, -1, 0, -1, -1]


@pytest.mark.parametrize("dense", [0, 1 << 24])
def test_many_levels_at_once(monkeypatch, dense):
    monkeypatch.setattr("resolvent.machines.tables.MAX_TABLE_SIZE", dense)
    states = np.array([0, 1, 0, 1, -1, -1, 0, 1, 1], np.int32)
    queries = np.array([1, 1, 2, 2, 0, 1, 0, 0, -1], np.int64)
    machine = shown()
    levels = machine.basis_many(states, queries)
    assert levels.tolist() == [2, 2, 0, 2, 1, 0, 1, 2, 0]
    assert levels.dtype == np.int8
    observed = machine.predict(states, queries, generalized=False)
    assert observed.tolist() == [0, 1, -1, 1, -1, -1, -1, 0, -1]
    assert np.array_equal(observed >= 0, levels == OBSERVED_CODE)


@pytest.mark.parametrize("dense", [0, 1 << 24])
def test_a_machine_is_marked_where_queries_were_observed(monkeypatch, dense):
    monkeypatch.setattr("resolvent.machines.tables.MAX_TABLE_SIZE", dense)
    support = Support(np.ones((2, 3), np.int64), np.ones(3, np.int64), np.array([4]), np.array([4]))
    states = np.array([0, 0, -1, 1, 0, 1, 1], np.int32)
    queries = np.array([0, 0, 0, 1, -1, 2, 0], np.int64)
    machine = shown(support=support).with_observed(states, queries)
    assert (machine.observed_constant_state.tolist(), machine.observed_constant_query.tolist()) == (
        [0, 1],
        [0, 0],
    )
    assert (machine.observed_constant_state.dtype, machine.observed_constant_query.dtype) == (
        np.int32,
        np.int64,
    )
    assert (machine.support.constants.tolist(), machine.support.constants_by_state.tolist()) == (
        [4],
        [],
    )
    assert machine.basis(0, "hall", "look") is Basis.OBSERVED
    assert shown().with_observed(states[:1], queries[:1]).observed_constant_state.tolist() == [0]
    assert shown().with_observed(states[:0], queries[:0]).observed_constant_state.tolist() == []


@pytest.mark.parametrize("dense", [0, 1 << 24])
def test_a_machine_without_outputs_predicts_nothing(monkeypatch, dense):
    monkeypatch.setattr("resolvent.machines.tables.MAX_TABLE_SIZE", dense)
    none = np.array([], np.int64)
    machine = lock(
        output_state=none.astype(np.int32),
        output_query=none,
        output_value=none.astype(np.int32),
        constant_query=none,
        constant_value=none.astype(np.int32),
    )
    assert machine.predict(np.array([0], np.int32), np.array([1], np.int64)).tolist() == [-1]


@pytest.mark.parametrize(
    "changes",
    [
        {"transitions": np.array([[0, 0, 1], [1, 1, 1]], np.int32)},
        {"output_value": np.array([0, 1, 0], np.int32)},
        {"output_query": np.array([1, 1, 3], np.int64)},
        {"constant_value": np.array([1], np.int32)},
        {"trivial": ()},
        {
            "observed_constant_state": np.array([0], np.int32),
            "observed_constant_query": np.array([0], np.int64),
        },
        {"actions": Vocabulary(["look", "pull"])},
        {"labels": Vocabulary([frozenset(), frozenset({"bell"}), frozenset({"lock"})])},
    ],
)
def test_machines_are_equal_in_every_table_or_not_at_all(changes):
    assert lock() == lock()
    assert hash(lock()) == hash(lock())
    assert lock() != lock(**changes)


def test_class_and_rounding_are_part_of_a_machine():
    assert lock() != lock(RewardMachine)
    assert lock() != lock(Machine)
    assert lock(RewardMachine) != lock(RewardMachine, supplemented=True)
    assert lock(RewardMachine) != lock(RewardMachine, digits=2)
    assert lock(Machine) != lock(Machine, predicts="cost")
    assert lock(RewardMachine, digits=2).digits == 2
    assert lock() != "lock"


def test_a_machine_is_called_after_what_it_predicts():
    machines = [lock(), lock(RewardMachine), lock(Machine, predicts="cost"), lock(Machine)]
    assert [one.name for one in machines] == ["transition", "reward", "cost", "output"]
    assert [one.predicts for one in machines] == ["observation", "reward", "cost", "output"]
    assert machines[2].title == "Cost Machine"
    assert "Machine: 2 states, predicts the cost" in str(machines[2])


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        (Machine, {"predicts": "reward"}, "Machine does not predict 'reward': make it a Reward"),
        (Machine, {"predicts": "observation"}, "make it a TransitionMachine"),
        (RewardMachine, {"predicts": "cost"}, "RewardMachine does not predict 'cost': make it a M"),
        (TransitionMachine, {"predicts": "reward"}, "TransitionMachine does not predict 'reward'"),
        (Machine, {"predicts": "transition"}, "a column called 'transition': rename the column"),
        (Machine, {"predicts": ""}, "a column called '': rename the column"),
        (TransitionMachine, {"supplemented": True}, "with its own states"),
    ],
)
def test_machines_that_contradict_their_name_are_refused(kind, changes, message):
    with pytest.raises(ModelError, match=message):
        lock(kind, **changes)


def test_machines_describe_themselves():
    assert repr(lock()) == "TransitionMachine(2 states, 3 labels, 3 outputs by state, 1 constant)"
    assert "TransitionMachine: 2 states" in str(lock())


def test_codes_of_known_and_unknown_values():
    codes = codes_of(["b", "z", "a"], Vocabulary(["a", "b"]), missing=9)
    assert codes.tolist() == [1, 9, 0]
    assert codes.dtype == np.int32
    assert codes_of([], Vocabulary(["a"]), -1).tolist() == []


def sticking(**changes):
    """The lock, whose door sticks: of ten pushes in state 1, two lead back to the hall."""
    columns = ([1, 1], np.int32), ([1, 1], np.int64), ([0, 1], np.int32), ([2, 8], np.int64)
    support = Support(np.ones((2, 3), np.int64), np.array([4, 10, 6]), np.array([20]))
    output_counts = OutputCounts(*(np.array(*column) for column in columns))
    return lock(**{"output_counts": output_counts, "support": support, **changes})


def test_outputs_that_vary_have_shares():
    machine = sticking()
    assert machine.is_noisy
    assert machine.output(1, "hall", "push") == "room"
    shares = machine.distribution(1, "hall", "push")
    assert list(shares.items()) == [("room", 0.8), ("hall", 0.2)]
    assert machine.counts(1, "hall", "push") == {"room": 8, "hall": 2}
    assert machine.entropy(1, "hall", "push") == pytest.approx(0.721928, abs=1e-6)
    assert machine.noise == 2 / 40


def test_outputs_that_do_not_vary_are_certain():
    machine = sticking()
    assert machine.distribution(0, "hall", "push") == {"hall": 1.0}
    assert machine.counts(0, "hall", "push") == {"hall": 4}
    assert machine.entropy(0, "hall", "push") == 0
    assert not lock().is_noisy
    assert lock().noise == 0


def test_a_generalized_output_has_no_count_in_its_state():
    machine = sticking()
    for state in (0, UNSEEN):
        assert machine.distribution(state, "hall", "look") == {"hall": 1.0}
        assert machine.counts(state, "hall", "look") == {"hall": 0}


def test_what_was_never_seen_has_no_distribution():
    machine = sticking()
    for query in ((0, "room", "look"), (0, "attic", "look"), (UNSEEN, "hall", "push")):
        assert machine.distribution(*query) == machine.counts(*query) == {}
        assert np.isnan(machine.entropy(*query))
    with pytest.raises(ModelError, match="state 7 does not exist"):
        machine.distribution(7, "hall", "push")


def test_counts_that_a_machine_does_not_hold():
    bare = sticking(support=None)
    assert bare.counts(1, "hall", "push") == {"room": 8, "hall": 2}
    with pytest.raises(ModelError, match="does not hold how often a query was observed in a state"):
        bare.counts(0, "hall", "push")
    assert bare.noise == 2 / (10 + 3)  # what is not counted was asked once
    asked = {
        "observed_constant_state": np.array([1], np.int32),
        "observed_constant_query": np.array([0], np.int64),
    }
    with pytest.raises(ModelError, match="infer it from traces"):
        sticking(**asked).counts(1, "hall", "look")


def test_machines_with_other_shares_differ():
    machine = sticking()
    scaled = replace(machine.output_counts, count=machine.output_counts.count * 3)
    assert sticking(output_counts=scaled) == machine
    assert hash(sticking(output_counts=scaled)) == hash(machine)
    assert lock() != machine
    assert (
        sticking(
            output_counts=replace(machine.output_counts, count=machine.output_counts.count + 1)
        )
        != machine
    )


def test_methods_give_what_the_functions_give():
    machine = House().machines().transition
    assert machine.to_text(most_outputs=1) == to_text(machine, most_outputs=1)
    assert machine.to_text() == str(machine)
    assert machine.to_dot() == to_dot(machine)
    assert machine.to_mermaid() == to_mermaid(machine)
    assert machine.to_mealy_dot(complete=True) == to_mealy_dot(machine, complete=True)
    assert machine.is_minimal()
