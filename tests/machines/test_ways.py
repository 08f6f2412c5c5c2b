"""How states are reached, in words: all at once as one by one, and long chains in no time."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import resolvent as rs
from resolvent.machines import RewardMachine
from resolvent.machines.compare import access_sequence_texts, label_sequence_text
from resolvent.machines.memory import BreadthFirstSearch
from resolvent.traces import Vocabulary


def machine_of(transitions):
    transitions = np.array(transitions, np.int32)
    return RewardMachine(
        labels=Vocabulary(frozenset({f"l{code}"}) for code in range(transitions.shape[1])),
        observations=Vocabulary(["hall"]),
        actions=Vocabulary(["go"]),
        outputs=Vocabulary([0.0]),
        transitions=transitions,
        trivial=(),
        output_state=np.empty(0, np.int32),
        output_query=np.empty(0, np.int64),
        output_value=np.empty(0, np.int32),
        constant_query=np.array([0], np.int64),
        constant_value=np.array([0], np.int32),
    )


def chain(states):
    return machine_of([[state + 1] for state in range(states - 1)] + [[-1]])


@st.composite
def tables(draw):
    states, labels = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    row = st.lists(st.integers(-1, states - 1), min_size=labels, max_size=labels)
    return draw(st.lists(row, min_size=states, max_size=states))


@given(tables())
def test_histories_are_the_shortest_and_first_by_label(table):
    machine = machine_of(table)
    shortest = {0: ()}
    ahead = [0]
    for state in ahead:  # breadth first, with whole histories
        for code, target in enumerate(table[state]):
            if target >= 0 and target not in shortest:
                shortest[target] = (*shortest[state], machine.labels[code])
                ahead.append(target)
    assert machine.reachable() == list(shortest)
    texts = access_sequence_texts(machine)
    for state in range(machine.states):
        if state not in shortest:
            assert machine.access_transition(state) is None
            assert texts[state] == "no labels lead here"
            with pytest.raises(rs.errors.ModelError, match=f"no labels lead to state {state}"):
                machine.access_sequence(state)
            continue
        history = shortest[state]
        assert machine.access_sequence(state) == history
        assert texts[state] == label_sequence_text(history)
        if history:
            assert machine.access_transition(state) == (machine.run(history[:-1]), history[-1])


def test_long_histories_are_cut_alike_wherever_they_stand():
    machine = chain(60)
    assert access_sequence_texts(machine) == [
        label_sequence_text(machine.access_sequence(state)) for state in range(60)
    ]
    assert label_sequence_text(machine.access_sequence(32)) == ", ".join(["l0"] * 32)
    assert label_sequence_text(machine.access_sequence(33)) == ", ".join(
        [*["l0"] * 8, "… 17 more …", *["l0"] * 8]
    )


def test_a_chain_of_60_000_states_is_written_in_room_that_grows_with_it():
    machine = chain(60_000)
    assert len(machine.reachable()) == 60_000
    assert len(machine.access_sequence(59_999)) == 59_999
    for text in (machine.to_text(), machine.to_dot()):
        assert len(text) < 400 * machine.states


def test_no_more_outputs_are_written_than_requested():
    machine = chain(50)
    asked = np.arange(50, dtype=np.int32)
    queries = [f"room {number}" for number in range(40)]
    machine = replace(
        machine,
        observations=Vocabulary(queries),
        output_state=np.repeat(asked, 40),
        output_query=np.tile(np.arange(40), 50),
        output_value=np.zeros(2000, np.int32),
        constant_query=np.empty(0, np.int64),
        constant_value=np.empty(0, np.int32),
    )
    text = machine.to_text(most_outputs=3)
    assert "room 2 " in text
    assert "room 3 " not in text
    assert "… and 37 more that depend on the state" in text


def test_the_nearest_nodes_are_visited_first():
    search = BreadthFirstSearch([1])
    for node in search:
        if node == 10:
            break
        search.add(2 * node, node, "double")
        search.add(node + 3, node, "add 3")
    assert search.path_to(10) == [(1, "double"), (2, "add 3"), (5, "double")]
