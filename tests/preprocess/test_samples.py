"""Samples, the label histories they share, and their supplement, computed by hand."""

import numpy as np
import pytest

import resolvent as rs
from resolvent.machines import machines_of
from resolvent.preprocess.samples import Histories, output_samples, rounded, supplement
from resolvent.preprocess.timing import NONE, LabelTiming
from resolvent.replay.replaying import states_at_steps
from resolvent.traces import Trace, TraceSet, Vocabulary

# Observations hall, yard = 0, 1; actions left, up = 0, 1; labels no event, key = 0, 1.
TRACES = TraceSet(
    [
        Trace(["hall", "yard", "yard"], [None, "key", None], ["up", "left"], [0.5, 2]),
        Trace(["yard", "hall"], ["key", None], ["up"], [-1]),
    ]
)


def query(samples, alpha):
    observation, action = divmod(int(samples.alpha_keys[alpha]), len(samples.actions))
    return samples.observations[observation], samples.actions[action]


def test_transition_samples_by_hand():
    samples = output_samples(TRACES, Histories.of(TRACES, LabelTiming.CURRENT), "observation")
    assert samples.alpha.tolist() == [0 * 2 + 1, 1 * 2 + 0, 1 * 2 + 1]
    assert samples.output.tolist() == [1, 1, 0]  # yard, yard, hall
    assert samples.beta.tolist() == [-1, 1, -1]
    assert samples.offsets.tolist() == [0, 2, 3]
    assert samples.alpha_keys.tolist() == [0, 1, 2, 3]
    assert query(samples, 2) == ("yard", "left")
    assert list(samples.outputs) == ["hall", "yard"]
    assert (samples.alpha.dtype, samples.output.dtype, samples.beta.dtype) == (np.int32,) * 3
    assert samples.offsets.dtype == np.int64


def test_reward_samples_differ_in_the_output_alone():
    mine = output_samples(TRACES, Histories.of(TRACES, LabelTiming.LAGGED), "reward")
    theirs = output_samples(TRACES, Histories.of(TRACES, LabelTiming.LAGGED), "observation")
    assert mine.output.tolist() == [1, 2, 0]
    assert list(mine.outputs) == [-1.0, 0.5, 2.0]
    for column in ("alpha", "beta", "offsets", "alpha_keys"):
        assert np.array_equal(getattr(mine, column), getattr(theirs, column))


def test_another_observation_column_replaces_that_of_the_traces():
    observed = (Vocabulary(["x", "y", "z"]), np.array([2, 0, 1], np.int32))
    samples = output_samples(
        TRACES, Histories.of(TRACES, LabelTiming.CURRENT), "reward", observed=observed
    )
    assert [query(samples, alpha) for alpha in samples.alpha] == [
        ("z", "up"),
        ("x", "left"),
        ("y", "up"),
    ]


def test_rewards_are_rounded_and_joined():
    traces = TraceSet([Trace([0] * 5, [None] * 5, [0] * 4, [0.12, 0.08, -0.04, 0.25])])
    samples = output_samples(traces, Histories.of(traces, LabelTiming.CURRENT), "reward", digits=1)
    assert list(samples.outputs) == [0.0, 0.1, 0.2]  # 0.25 rounds to even, as Python does
    assert samples.output.tolist() == [1, 1, 0, 2]
    assert str(samples.outputs[0]) == "0.0"  # -0.04 does not become -0.0
    assert rounded(traces.rewards, None) == [-0.04, 0.08, 0.12, 0.25]


@pytest.mark.parametrize("digits", [None, 1])
@pytest.mark.parametrize("redundant", [True, False])
def test_large_alphabets_give_the_same_machine(monkeypatch, digits, redundant):
    """Beyond a size only alphas that occur get ids; nothing else may change."""
    options = {"reward_digits": digits, "remove_redundant": redundant}
    dense = rs.infer(TRACES, options=rs.InferenceOptions(**options))
    monkeypatch.setattr("resolvent.preprocess.samples.MAX_TABLE_SIZE", 0)
    monkeypatch.setattr("resolvent.machines.tables.MAX_TABLE_SIZE", 0)
    samples = output_samples(TRACES, Histories.of(TRACES, LabelTiming.CURRENT), "observation")
    assert samples.alpha_keys.tolist() == [1, 2, 3]
    assert samples.alpha.tolist() == [0, 1, 2]
    assert query(samples, 0) == ("hall", "up")
    sparse = rs.infer(TRACES, options=rs.InferenceOptions(**options))
    assert sparse.machines == dense.machines
    assert sparse.machines.score(TRACES).perfect


TIMED = TraceSet(
    [
        Trace([0, 1, 2], ["b", "a", "c"], ["go", "go"], [0, 0]),
        Trace([0, 1], [None, "a"], ["go"], [0]),
    ]
)


def test_histories_contain_the_labels_that_the_timing_reads():
    histories = Histories.of(TIMED, LabelTiming.CURRENT)
    assert histories.beta.tolist() == [NONE, TIMED.labels.code(frozenset("a")), NONE]
    assert histories.offsets.tolist() == [0, 2, 3]
    assert histories.labels == TIMED.labels


def test_the_tree_has_a_node_for_each_distinct_history():
    beta = np.array([1, 0, 1, 0, 0], np.int32)  # 1, 10 | 1, 10 | 0
    labels = Vocabulary([frozenset("a"), frozenset("b")])
    tree = Histories(beta, np.array([0, 2, 4, 5]), labels).tree
    assert [tree.history(node) for node in range(len(tree))] == [[], [0], [1], [1, 0]]


def test_the_tree_is_built_once():
    histories = Histories.of(TIMED, LabelTiming.CURRENT)
    assert histories.tree is histories.tree


# ---- supplement ----

# The key opens the door between hall and room: one bit of memory.
DOOR = TraceSet(
    [
        Trace(["hall", "hall", "hall", "room"], [None, None, "key", None], ["push"] * 3, [0, 0, 1]),
        Trace(["hall", "room", "hall"], ["key", "key", None], ["look", "push"], [0, 0]),
    ]
)


def supplemented(timing):
    machine = rs.infer(
        DOOR, timing=timing, options=rs.InferenceOptions(remove_redundant=False)
    ).machines.transition
    states = states_at_steps(machines_of([machine], timing), DOOR)["transition"]
    vocabulary, codes = supplement(DOOR, states)
    return machine, vocabulary, [vocabulary[code] for code in codes]


def test_the_supplement_pairs_each_step_with_its_state():
    machine, vocabulary, observed = supplemented(LabelTiming.CURRENT)
    opened = machine.run([{"key"}])
    assert (machine.states, opened) == (2, 1)
    assert observed == [("hall", 0), ("hall", 0), ("hall", 1), ("hall", 0), ("room", 1)]
    assert list(vocabulary) == [
        ("hall", 0),
        ("hall", 1),
        ("room", 1),
    ]  # sorted, and only what occurs


def test_another_timing_supplements_other_states():
    machine, _, observed = supplemented(LabelTiming.CURRENT_WITH_INITIAL)
    states = [machine.run(labels) for labels in ([[]], [[], []], [[], [], ["key"]], [["key"]])]
    assert [state for _, state in observed[:4]] == states


def test_a_supplement_by_labels_unknown_to_the_machine_is_refused():
    machine = rs.infer(DOOR).machines.transition
    other = TraceSet(
        [
            Trace(["hall", "hall"], [None, None], ["push"], [0]),
            Trace(["hall"] * 4, [None, None, "gong", None], ["push"] * 3, [0] * 3),
        ]
    )
    states = states_at_steps(machines_of([machine]), other)["transition"]
    with pytest.raises(
        rs.errors.ModelError, match="trace 1, step 2: the transition machine has no state"
    ):
        supplement(other, states)
