"""Information of outputs and likelihood of transitions, against logarithms and counts by hand."""

from math import log2

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from resolvent.inference.merge_order import (
    NEAREST,
    ONE_BIT,
    OutputInformation,
    Transition,
    TransitionModel,
    bits,
    cost_of_outputs,
)
from resolvent.inference.state_merging import build_prefix_tree, try_fold
from resolvent.preprocess.timing import NONE
from strategies import sample_set


@given(st.integers(1, 2**62))
@example(1)
@example(2**31 - 1)
@example(2**62)
def test_bits_is_a_logarithm(number):
    assert -2 < bits(number) - 256 * log2(number) < 0.01


@given(st.integers(1, 10**9))
def test_bits_never_falls(number):
    assert bits(number) <= bits(number + 1)


def test_rare_outputs_weigh_more_and_visits_do_not_count():
    common = [(0, 0, 0)] * 6
    rare = [*common, (0, 0, 1)]
    information, repeated = (
        OutputInformation(build_prefix_tree(sample_set(traces))) for traces in ([rare], [rare] * 5)
    )
    # Seven nodes answer, six of them alike; two kinds and one more make it ten.
    assert information._bits == {(0, 0): bits(10) - bits(7), (0, 1): bits(10) - bits(2)}
    assert repeated._bits == information._bits


def test_distant_outputs_weigh_less():
    # The root and what follows label 1 answer alike, then read label 0 and answer alike again.
    samples = sample_set([[(-1, 0, 5), (0, 1, 6)], [(1, 0, 5), (0, 1, 6)]])
    tree = build_prefix_tree(samples)
    information = OutputInformation(tree)
    blue = tree.children[0][1]
    fold = try_fold(tree, 0, blue, 0, 1)
    near, far = (information._bits[answer] for answer in ((0, 5), (1, 6)))
    assert fold.agreeing == 2
    assert information.of_fold(fold) == (near * NEAREST + far * (NEAREST * 3 // 5)) // NEAREST


def test_new_outputs_are_no_evidence():
    samples = sample_set([[(-1, 0, 5)], [(1, 1, 6)]])
    tree = build_prefix_tree(samples)
    assert OutputInformation(tree).of_fold(try_fold(tree, 0, tree.children[0][1], 0, 1)) == 0


def test_the_last_output_of_a_node_is_the_one_before_it_where_traces_agree():
    agreed = [(-1, 0, 7), (3, 0, 8), (4, 0, 9)]
    tree = build_prefix_tree(sample_set([agreed, agreed]))
    assert tree.last_output == [NONE, 7, 8]
    other = [(-1, 1, 5), (3, 0, 8), (4, 0, 9)]
    tree = build_prefix_tree(sample_set([agreed, other]))
    assert tree.last_output == [NONE, NONE, 8]


def test_the_last_output_of_a_node_does_not_come_from_another_trace():
    traces = [[(-1, 0, 7)], [(3, 0, 8)], [(-1, -1, -1), (4, 0, 9)]]
    for order in (traces, traces[::-1]):
        assert build_prefix_tree(sample_set(order)).last_output == [NONE] * 3


def test_loops_become_more_likely_with_loops():
    model = TransitionModel()
    loop, away = Transition(0, 5, 1, 1), Transition(0, 5, 1, 2)
    assert model.gain(loop, 3) > model.gain(away, 3)  # half of all moves, at first
    for state in range(4):
        model.learn(Transition(0, 5, state, state))
    favoured = model.gain(loop, 3)
    # Four of four, and half for the label: (4 + 4.5/5) / 5 of all; two digits for three states.
    assert favoured == pytest.approx((log2((4 + 4.5 / 5) / 5) + 2) * ONE_BIT, abs=2)
    assert model.gain(away, 3) < -4 * ONE_BIT


def test_loops_depend_on_the_output_before_the_label():
    model = TransitionModel()
    for state in range(8):
        model.learn(Transition(0, 5, state, state))
    refused, accepted = Transition(0, 5, 9, 9), Transition(0, 6, 9, 9)
    for state in range(4):
        model.learn(Transition(0, 6, state, 1 if state != 1 else 2))
    assert model.gain(refused, 10) > model.gain(accepted, 10) + ONE_BIT
    assert model.gain(accepted._replace(target=1), 10) > model.gain(accepted, 10)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 4), st.integers(0, 4))),
    st.integers(0, 2),
    st.integers(0, 2),
)
def test_transition_costs_are_a_code(seen, label, lead):
    """The costs are those of a code: shares of all that may follow add up to at most one."""
    model = TransitionModel()
    for move in seen:
        model.learn(Transition(*move))
    targets = [*range(5), NONE]
    costs = [model.cost(Transition(label, lead, 0, target), 5) for target in targets]
    assert min(costs) >= 0
    assert sum(2 ** (-cost / ONE_BIT) for cost in costs) < 1.03  # logarithms are rounded down


def test_outputs_shared_by_all_states_cost_little():
    def cost(outputs):
        rows = [(0, 0, output) for output in outputs]
        tree = build_prefix_tree(sample_set([rows]))
        return cost_of_outputs(tree, list(range(len(tree))), OutputInformation(tree))

    assert cost([0] * 20) == 0
    assert cost([0] * 19 + [1]) < cost([0, 1] * 10)
