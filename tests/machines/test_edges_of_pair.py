from collections import defaultdict

import pytest
from hypothesis import given, settings

import resolvent as rs
from resolvent.errors import ModelError
from resolvent.machines import EdgeRewardMachine, read_reward_machine
from resolvent.machines.io.edge_rewards import ENDED
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import Trace, TraceSet
from resolvent.traces.symbols import label_text
from resolvent.worlds import House
from strategies import world_traces


def trace(labels, rewards, first=(), **ends):
    """A world of one cell, in which an action is named after the label that it leads to."""
    labels = [frozenset([one] if isinstance(one, str) else one) for one in labels]
    return Trace(
        ["x"] * (len(labels) + 1), [first, *labels], map(label_text, labels), rewards, **ends
    )


def on_edges(traces, **options):
    return EdgeRewardMachine.from_pair(
        rs.infer(traces, options=rs.InferenceOptions(**options)).machines, traces
    )


# Coffee, then the office: that pays 1 and ends it. Mail changes nothing.
TASK = TraceSet(
    [
        trace(["c", "o"], [0, 1], terminated=True),
        trace(["o", "c", "m", ["c", "o"]], [0, 0, 0, 1], terminated=True),
        trace(["m", "o", [], "m", "o"], [0, 0, 0, 0, 0], truncated=True),
        trace(["c", "c", [], "o"], [0, 0, 0, 1], terminated=True),
        trace(["c", "m", "o"], [0, 0, 1], terminated=True),
    ]
)


def test_a_task_by_hand():
    machine = on_edges(TASK)
    assert (machine.initial, machine.terminal, machine.states) == (0, {2}, {0, 1, 2})
    assert machine.propositions == {"c", "m", "o"}
    for label in ("m", "o", ()):
        assert machine.step(0, label) == (0, 0.0)
    assert machine.step(0, "c") == (1, 0.0)
    for label in ("c", "m", ()):
        assert machine.step(1, label) == (1, 0.0)
    assert machine.step(1, "o") == (2, 1.0)
    assert machine.step(1, ["c", "o"]) == (2, 1.0)
    assert machine.step(0, ["c", "o"]) == (ENDED, 0.0)  # never seen: no edge


def test_the_file_of_a_task(tmp_path):
    on_edges(TASK).save(tmp_path / "task.txt")
    assert (tmp_path / "task.txt").read_text() == (
        "0  # initial state\n"
        "[2]  # terminal states\n"
        "(0,0,'!c&!m&!o|!c&m&!o|!c&!m&o',ConstantRewardFunction(0))\n"
        "(0,1,'c&!m&!o',ConstantRewardFunction(0))\n"
        "(1,1,'!c&!m&!o|c&!m&!o|!c&m&!o',ConstantRewardFunction(0))\n"
        "(1,2,'!c&!m&o|c&!m&o',ConstantRewardFunction(1))\n"
    )
    assert read_reward_machine(tmp_path / "task.txt") == on_edges(TASK)


def test_the_order_of_traces_makes_no_difference():
    assert on_edges(TASK) == on_edges(TASK.take([3, 1, 0, 4, 2, 1]))


def test_the_house_that_rewards_its_cyanroom():
    machine = on_edges(rs.collect(House(goal="cyanroom"), episodes=200, seed=0))
    assert machine.step(0, "toilet") == (1, 1.0)
    for label in ((), "key", "sofa"):  # sitting ends the episode, the sofa's label does not
        assert machine.step(0, label) == (0, 0.0)


def test_the_house_rewards_an_action_that_no_label_shows():
    traces = rs.collect(House(), episodes=100, seed=0)
    with pytest.raises(ModelError) as caught:
        on_edges(traces)
    words = str(caught.value).split()
    places = [
        (int(words[at + 1].strip(",")), int(words[at + 3].strip(",:")))
        for at, word in enumerate(words)
        if word == "trace"
    ]
    paid = [traces[number].rewards[step] for number, step in places]
    read = {traces[number].labels[step + 1] for number, step in places}
    assert sorted(paid) == [0.0, 1.0]
    assert read == {frozenset({"sofa"})}


def test_a_label_that_ends_only_some_episodes_leads_on():
    mixed = TraceSet([trace(["s"], [0], terminated=True), trace(["s", "s"], [0, 0])])
    machine = on_edges(mixed)
    assert machine.terminal == frozenset()
    assert machine.step(0, "s") == (0, 0.0)


def test_a_label_after_which_nothing_was_seen_ends():
    machine = on_edges(TraceSet([trace(["a", "z"], [0, 5], truncated=True)]))
    assert machine.step(0, "a") == (0, 0.0)
    assert machine.step(0, "z") == (1, 5.0)
    assert machine.has_ended(1)


def test_rewards_are_rounded_as_the_machine_rounds():
    close = TraceSet([trace(["a", "a"], [0.1, 0.1004])])
    assert on_edges(close, reward_digits=2).step(0, "a") == (0, 0.1)


def test_the_first_label_is_read_where_the_timing_reads_it():
    cue = [trace(["o", "o"], [1, 1], first="c"), trace(["m", "o"], [0, 1], first="c")]
    timing = LabelTiming.CURRENT_WITH_INITIAL
    machine = on_edges(TraceSet(cue), timing=timing)
    assert machine.step(machine.initial, "o")[1] == 1.0
    other = TraceSet([*cue, trace(["o", "o"], [7, 7], first="d")])
    with pytest.raises(ModelError, match=r"trace 0 starts in state . .* and trace 2 in state"):
        on_edges(other, timing=timing)


def test_lagged_labels_are_refused():
    pair = rs.infer(TASK).machines.replacing(timing=LabelTiming.LAGGED)
    with pytest.raises(ModelError, match=r"one step late.*timing 'current'"):
        EdgeRewardMachine.from_pair(pair, TASK)


def test_other_traces_than_it_was_inferred_from():
    pair = rs.infer(TASK).machines
    with pytest.raises(
        ModelError, match=r"trace 0, step 1: .* give the traces it was inferred from"
    ):
        EdgeRewardMachine.from_pair(pair, TraceSet([trace(["new", "c"], [0, 0])]))
    with pytest.raises(ModelError, match="there are no traces"):
        EdgeRewardMachine.from_pair(pair, TraceSet())


@given(traces=world_traces())
@settings(deadline=None, max_examples=75)
def test_its_rewards_are_those_of_the_traces_or_it_is_refused(traces):
    pair = rs.infer(traces).machines
    paid = defaultdict(set)
    for one in traces:
        state = 0
        for label, reward in zip(one.labels[1:], one.rewards, strict=True):
            paid[state, label].add(reward)
            state = pair.reward.step(state, label)
    if any(len(rewards) > 1 for rewards in paid.values()):
        with pytest.raises(ModelError, match="depends on observation and action too"):
            EdgeRewardMachine.from_pair(pair, traces)
        return
    machine = EdgeRewardMachine.from_pair(pair, traces)
    for one in traces:
        state = machine.initial
        for label, reward in zip(one.labels[1:], one.rewards, strict=True):
            state, given = machine.step(state, label)
            assert given == reward
        assert state != ENDED
