"""Columns that the search for events reads, worked out by hand."""

import numpy as np
import pytest

from resolvent import _core
from resolvent.events.steps import distinct_traces, event_steps
from resolvent.traces import Trace, TraceSet
from resolvent.traces.labelling import Labelling

SWITCH = TraceSet(
    [
        Trace(["dark", "on", "lit"], [None] * 3, ["push", "look"], [0, 1]),
        Trace(["dark", "on", "dark"], [None] * 3, ["push", "look"], [0, 0]),
    ]
)
"""Observations are coded dark 0, lit 1, on 2; both traces push, and look when "on"."""


def test_only_questions_with_several_answers_tell_something():
    steps = event_steps(SWITCH, Labelling("observation"), "reward")
    assert steps.answer.tolist() == [-1, 1, -1, 0]
    assert steps.question_of.tolist() == [0, 0]
    assert steps.telling.tolist() == [1, 3]


def test_beginnings_are_sources_of_their_own():
    steps = event_steps(SWITCH, Labelling("observation"), "reward")
    assert steps.sources == 6
    assert steps.source.tolist() == [3 + 0, 2, 3 + 0, 2]


def test_an_episode_begins_without_an_action():
    steps = event_steps(SWITCH, Labelling("action"), "observation")
    assert steps.source.tolist() == [-1, 1, -1, 1]  # look 0, push 1


def test_what_stands_for_observations_tells_questions_apart():
    apart = np.array([0, 1, 0, 2], np.int32)
    steps = event_steps(SWITCH, Labelling("observation"), "reward", apart)
    assert steps.answers == 0


def test_answers_told_follow_the_table():
    steps = event_steps(SWITCH, Labelling("observation"), "reward")
    table = np.tile(np.arange(2), (6, 1))
    assert steps.told(table).tolist() == [[1, 1], [0, 0]]
    table[2] = [1, 0]
    assert steps.told(table).tolist() == [[0, 0], [1, 1]]
    assert steps.surprises(table) == 1
    assert steps.entered(table).tolist() == [True, True]
    assert steps.readings(table)[2].tolist() == [2, 0]


def test_answers_after_count_from_entering_a_state():
    source = np.array([0, 1, 0, 2, 1], np.int32)
    answer = np.array([0, 0, 1, 0, 1], np.int32)
    states = np.array([0, 0, 0, 1, 1], np.int32)  # source 2 leads from 0 to 1
    offsets = np.array([0, 5], np.int64)

    def after(state):
        counts = _core.answers_after(
            source, answer, offsets, states, state=state, sources=3, answers=2
        )
        return counts.reshape(3, 2).tolist()

    assert after(0) == [[2, 1], [1, 1], [0, 0]]
    assert after(1) == [[0, 0], [0, 1], [0, 0]]


def test_the_state_that_all_begin_in_is_state_0():
    steps = event_steps(SWITCH, Labelling("observation"), "reward")
    table = np.tile(np.arange(2), (6, 1))
    assert steps.rooted(table) is None
    table[3] = [1, 1]  # "dark" at the beginning
    table[2] = [0, 0]
    rooted = steps.rooted(table)
    assert rooted is not None
    assert rooted[3].tolist() == [0, 1]
    assert rooted[2].tolist() == [1, 1]
    np.testing.assert_array_equal(steps.told(rooted), steps.told(table)[::-1])


def test_the_first_steps_are_those_of_whole_traces():
    steps = event_steps(SWITCH, Labelling("observation"), "reward")
    assert steps.first(3).source.tolist() == [3, 2]
    assert steps.first(1).offsets.tolist() == [0, 2]
    assert steps.first(100).offsets.tolist() == [0, 2, 4]


@pytest.mark.parametrize("order", [[1, 0], [0, 1, 1, 0, 1]])
def test_order_and_number_of_traces_make_no_difference(order):
    assert distinct_traces(SWITCH.take(order)) == distinct_traces(SWITCH)
