import pytest

import resolvent as rs
from resolvent.machines import machines_of
from resolvent.preprocess.supplement import supplement
from resolvent.preprocess.timing import LabelTiming
from resolvent.replay import states_at_steps

# The key opens the door between hall and room: one bit of memory.
TRACES = rs.TraceSet(
    [
        rs.Trace(
            ["hall", "hall", "hall", "room"], [None, None, "key", None], ["push"] * 3, [0, 0, 1]
        ),
        rs.Trace(["hall", "room", "hall"], ["key", "key", None], ["look", "push"], [0, 0]),
    ]
)


def pairs(timing):
    machine = rs.infer(
        TRACES, timing=timing, options=rs.InferenceOptions(remove_redundant=False)
    ).machines.transition
    states = states_at_steps(machines_of([machine], timing), TRACES)["transition"]
    vocabulary, codes = supplement(TRACES, states)
    return machine, vocabulary, [vocabulary[code] for code in codes]


def test_each_step_is_paired_with_its_state():
    machine, vocabulary, seen = pairs(LabelTiming.CURRENT)
    opened = machine.run([{"key"}])
    assert (machine.states, opened) == (2, 1)
    assert seen == [("hall", 0), ("hall", 0), ("hall", 1), ("hall", 0), ("room", 1)]
    assert list(vocabulary) == [
        ("hall", 0),
        ("hall", 1),
        ("room", 1),
    ]  # sorted, and only what occurs


def test_another_timing_gives_other_states():
    machine, _, seen = pairs(LabelTiming.CURRENT_WITH_INITIAL)
    states = [machine.run(labels) for labels in ([[]], [[], []], [[], [], ["key"]], [["key"]])]
    assert [state for _, state in seen[:4]] == states


def test_labels_unknown_to_the_machine_are_refused():
    machine = rs.infer(TRACES).machines.transition
    other = rs.TraceSet(
        [
            rs.Trace(["hall", "hall"], [None, None], ["push"], [0]),
            rs.Trace(["hall"] * 4, [None, None, "gong", None], ["push"] * 3, [0] * 3),
        ]
    )
    states = states_at_steps(machines_of([machine]), other)["transition"]
    with pytest.raises(
        rs.errors.ModelError, match="trace 1, step 2: the transition machine was never"
    ):
        supplement(other, states)
