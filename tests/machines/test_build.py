import numpy as np

from resolvent.machines import Machine, RewardMachine, Vocabularies, machine_of_tables
from resolvent.machines.build import RawAutomaton, automaton_of_transitions, build_machine
from resolvent.machines.memory import number_states
from resolvent.preprocess.reduction import ConstantOutputs
from resolvent.traces import Vocabulary
from strategies import sample_set


def column(*values, dtype=np.int32):
    return np.array(values, dtype)


# Promoted in the order 0, 1, 2; but a walk in label order meets 2 (by label 0) before 1.
AUTOMATON = RawAutomaton(
    access=column(0, 2, 1),
    transition_state=column(0, 0, 1, 2),
    transition_label=column(0, 1, 0, 1),
    transition_target=column(2, 1, 1, 0),
    transition_count=column(5, 6, 7, 8, dtype=np.int64),
    output_state=column(0, 1, 1, 2),
    output_alpha=column(1, 0, 1, 0),
    output_value=column(3, 4, 5, 6),
    output_count=column(10, 11, 12, 13, dtype=np.int64),
    events=(),
    attempts=0,
    tree_nodes=1,
)
SAMPLES = sample_set([], labels=3, alphas=4, outputs=9)
CONSTANTS = ConstantOutputs(column(3, 2), column(7, 8), column(20, 21, dtype=np.int64))


def test_states_are_numbered_breadth_first_in_label_order():
    machine = build_machine(Machine, AUTOMATON, SAMPLES, ConstantOutputs.nothing(), ())
    assert machine.transitions.tolist() == [[1, 2, -1], [-1, 0, -1], [2, -1, -1]]
    assert machine.output_state.tolist() == [0, 1, 2, 2]
    assert machine.output_query.tolist() == [1, 0, 0, 1]
    assert machine.output_value.tolist() == [3, 6, 4, 5]
    assert machine.constant_outputs == {}
    assert machine.trivial == ()


def test_what_reduction_took_out_comes_back():
    machine = build_machine(Machine, AUTOMATON, SAMPLES, CONSTANTS, (2,))
    assert machine.transitions.tolist() == [[1, 2, 0], [-1, 0, 1], [2, -1, 2]]
    assert machine.constant_query.tolist() == [2, 3]
    assert machine.constant_value.tolist() == [8, 7]
    assert machine.trivial == (2,)
    assert machine.output(1, 2, "ask") == 8


def test_support_follows_the_new_numbers():
    support = build_machine(Machine, AUTOMATON, SAMPLES, CONSTANTS, (2,)).support
    assert support is not None
    assert support.transitions.tolist() == [[5, 6, 0], [0, 8, 0], [7, 0, 0]]
    assert support.outputs.tolist() == [10, 13, 11, 12]
    assert support.constants.tolist() == [21, 20]


def test_trivial_labels_do_not_change_the_numbers():
    plain = build_machine(Machine, AUTOMATON, SAMPLES, CONSTANTS, ())
    looped = build_machine(Machine, AUTOMATON, SAMPLES, CONSTANTS, (2,))
    assert plain.transitions[:, :2].tolist() == looped.transitions[:, :2].tolist()


def test_classes_take_their_own_arguments():
    machine = build_machine(
        RewardMachine, AUTOMATON, SAMPLES, CONSTANTS, (), supplemented=True, digits=2
    )
    assert (machine.supplemented, machine.digits) == (True, 2)


def test_constant_outputs_of_known_tables_are_observed_in_their_states():
    # Queries 0 and 1; state 2 is initial, so the states are renumbered 2, 0, 1 → 0, 1, 2.
    machine, numbers = machine_of_tables(
        Machine,
        Vocabularies(
            Vocabulary([frozenset({"a"})]),
            Vocabulary(["hall"]),
            Vocabulary(["look", "push"]),
            Vocabulary(["no", "yes"]),
        ),
        column(1, -1, 0).reshape(3, 1),
        (
            column(0, 0, 1, 2, dtype=np.int64),
            column(0, 1, 0, 1, dtype=np.int64),
            column(1, 0, 1, 1),
        ),
        initial=2,
    )
    assert numbers.tolist() == [1, 2, 0]
    # Looking answers yes in both states where it was observed; pushing depends on the state.
    assert machine.constant_outputs == {("hall", "look"): "yes"}
    assert (machine.observed_constant_state.tolist(), machine.observed_constant_query.tolist()) == (
        [1, 2],
        [0, 0],
    )
    assert machine.output_state.tolist() == [0, 1]


def test_states_are_numbered_breadth_first():
    table = column(3, 1, -1, 2, 0, 0, 1, 3).reshape(4, 2)
    numbered, order, number = number_states(table)
    assert order.tolist() == [0, 3, 1, 2]
    assert number.tolist() == [0, 2, 3, 1, -1]
    assert numbered.tolist() == [[1, 2], [2, 1], [-1, 3], [0, 0]]


def test_the_automaton_of_a_table_has_its_transitions():
    automaton = automaton_of_transitions(np.int32([[1, -1], [0, 1]]))
    assert automaton.transition_state.tolist() == [0, 1, 1]
    assert automaton.transition_label.tolist() == [0, 0, 1]
    assert automaton.transition_target.tolist() == [1, 0, 1]
