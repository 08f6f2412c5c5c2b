import numpy as np

import resolvent as rs
from noisy_worlds import taught


def walks(*ends, label=None):
    """Traces of two steps that end so, of which the second step comes after a label."""
    return [rs.Trace(["a", "a", end], [None, label, None], ["go", "go"], [0, 0]) for end in ends]


CLEAN = rs.TraceSet([*walks("a"), *walks("b", label="key")])


def noisy_machine(traces):
    machines = rs.infer(CLEAN, outputs=["observation"]).machines
    return taught(machines, rs.TraceSet(traces)).transition


def test_a_state_predicts_the_most_frequent_output():
    machine = noisy_machine([*walks("a", "b", "a"), *walks("b", "b", "a", label="key")])
    assert machine.states == 2
    # In state 0 the first steps of all six, and the second ones of the first three.
    assert machine.counts(0, "a", "go") == {"a": 8, "b": 1}
    assert machine.counts(1, "a", "go") == {"b": 2, "a": 1}
    assert [machine.output(state, "a", "go") for state in (0, 1)] == ["a", "b"]
    assert machine.support.outputs.tolist() == [9, 3]
    assert machine.noise == 2 / 12


def test_a_query_that_varies_in_one_state_is_not_constant():
    # State 1 answers "a" or "b", state 0 always "a": by their main answers they are the same.
    machine = noisy_machine([*walks("a"), *walks("a", "a", "b", label="key")])
    assert machine.output_value.tolist() == [0, 0]
    assert len(machine.constant_value) == 0
    assert (machine.counts(0, "a", "go"), machine.noise) == ({"a": 5}, 1 / 8)


def test_traces_without_noise_leave_none():
    machine = noisy_machine(CLEAN)
    assert not machine.is_noisy
    assert machine == rs.infer(CLEAN, outputs=["observation"]).machines.transition


def test_steps_after_an_unknown_label_belong_to_no_state():
    lost = rs.Trace(["a", "a", "b"], [None, "gong", None], ["go", "go"], [0, 0])
    machine = noisy_machine([*CLEAN, lost])
    assert not machine.is_noisy
    assert int(machine.support.outputs.sum()) == 5
    assert np.all(machine.output_state >= 0)
    assert np.all(machine.support.transitions[machine.transitions < 0] == 0)
