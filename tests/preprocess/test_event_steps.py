"""Columns for the discovery of events, and lengths of their descriptions, computed by hand."""

from math import log

import numpy as np
import pytest

from resolvent import _core
from resolvent.preprocess.event_steps import (
    DescriptionLength,
    EventSteps,
    event_steps,
    unlabeled_distinct_traces,
)
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.traces import Trace, TraceSet

SWITCH = TraceSet(
    [
        Trace(["dark", "on", "lit"], [None] * 3, ["push", "look"], [0, 1]),
        Trace(["dark", "on", "dark"], [None] * 3, ["push", "look"], [0, 0]),
    ]
)
"""Observations are coded dark 0, lit 1, on 2; both traces push, and look when "on"."""


def test_only_queries_with_several_outputs_are_informative():
    steps = event_steps(SWITCH, LabelingFunction("observation"), "reward")
    assert steps.output.tolist() == [-1, 1, -1, 0]
    assert steps.query_of.tolist() == [0, 0]
    assert steps.informative.tolist() == [1, 3]


def test_starts_are_separate_sources():
    steps = event_steps(SWITCH, LabelingFunction("observation"), "reward")
    assert steps.n_sources == 6
    assert steps.source.tolist() == [3 + 0, 2, 3 + 0, 2]


def test_an_episode_begins_without_an_action():
    steps = event_steps(SWITCH, LabelingFunction("action"), "observation")
    assert steps.source.tolist() == [-1, 1, -1, 1]  # look 0, push 1


def test_another_observation_column_separates_queries():
    apart = np.array([0, 1, 0, 2], np.int32)
    steps = event_steps(SWITCH, LabelingFunction("observation"), "reward", apart)
    assert steps.n_outputs == 0


def test_output_counts_follow_the_table():
    steps = event_steps(SWITCH, LabelingFunction("observation"), "reward")
    table = np.tile(np.arange(2), (6, 1))
    assert steps.output_counts(table).tolist() == [[1, 1], [0, 0]]
    table[2] = [1, 0]
    assert steps.output_counts(table).tolist() == [[0, 0], [1, 1]]
    assert steps.count_unexplained(table) == 1
    assert steps.is_entered(table).tolist() == [True, True]
    assert steps.read_counts(table)[2].tolist() == [2, 0]


def test_outputs_are_counted_since_entering_a_state():
    source = np.array([0, 1, 0, 2, 1], np.int32)
    answer = np.array([0, 0, 1, 0, 1], np.int32)
    states = np.array([0, 0, 0, 1, 1], np.int32)  # source 2 leads from 0 to 1
    offsets = np.array([0, 5], np.int64)

    def after(state):
        counts = _core.output_counts_after(
            source, answer, offsets, states, state=state, sources=3, outputs=2
        )
        return counts.reshape(3, 2).tolist()

    assert after(0) == [[2, 1], [1, 1], [0, 0]]
    assert after(1) == [[0, 0], [0, 1], [0, 0]]


def test_the_common_initial_state_is_state_0():
    steps = event_steps(SWITCH, LabelingFunction("observation"), "reward")
    table = np.tile(np.arange(2), (6, 1))
    assert steps.rooted(table) is None
    table[3] = [1, 1]  # "dark" at the beginning
    table[2] = [0, 0]
    rooted = steps.rooted(table)
    assert rooted is not None
    assert rooted[3].tolist() == [0, 1]
    assert rooted[2].tolist() == [1, 1]
    np.testing.assert_array_equal(steps.output_counts(rooted), steps.output_counts(table)[::-1])


def test_the_first_steps_are_those_of_whole_traces():
    steps = event_steps(SWITCH, LabelingFunction("observation"), "reward")
    assert steps.first(3).source.tolist() == [3, 2]
    assert steps.first(1).offsets.tolist() == [0, 2]
    assert steps.first(100).offsets.tolist() == [0, 2, 4]


@pytest.mark.parametrize("order", [[1, 0], [0, 1, 1, 0, 1]])
def test_order_and_number_of_traces_make_no_difference(order):
    assert unlabeled_distinct_traces(SWITCH.take(order)) == unlabeled_distinct_traces(SWITCH)


STEPS = EventSteps(
    np.zeros(6, np.int32),
    np.array([0, 1, 0, 2, 3, 4], np.int32),
    np.array([0, 6], np.int64),
    np.array([0, 0, 1, 1, 1]),
    4,
)
"""One query with two answers and one with three."""


def test_outputs_are_coded_by_their_counts_so_far():
    """Two answers of the first, one of the second, one after the other, each beginning at 0.1."""
    one_by_one = -log(0.1 / 0.2) - log(1.1 / 1.2) - log(0.1 / 2.2)
    length = DescriptionLength(STEPS).of_outputs(np.array([2, 1, 0, 0, 0]))
    assert length == pytest.approx(one_by_one)


def test_the_order_of_outputs_makes_no_difference():
    other_order = -log(0.1 / 0.2) - log(0.1 / 1.2) - log(1.1 / 2.2)
    assert DescriptionLength(STEPS).of_outputs(np.array([2, 1, 0, 0, 0])) == pytest.approx(
        other_order
    )


def test_queries_are_coded_separately():
    description = DescriptionLength(STEPS)
    apart = description.of_outputs(np.array([[2, 1, 0, 0, 0], [0, 0, 1, 1, 0]])).sum()
    assert description.of_outputs(np.array([2, 1, 1, 1, 0])) == pytest.approx(apart)


def test_a_class_is_coded_once_for_all_its_events():
    stays, moves = [0, 1], [1, 1]
    description = DescriptionLength(STEPS)
    none = description.of_table(np.array([stays] * 4))
    one = description.of_table(np.array([moves, stays, stays, stays]))
    two = description.of_table(np.array([moves, moves, stays, stays]))
    assert none == pytest.approx(2.0)
    assert one - none == pytest.approx(log(4) + log(2) + log(4))
    assert two - one == pytest.approx(log(4) + log(2))
