"""Lengths of descriptions, worked out by hand."""

from math import log

import numpy as np
import pytest

from resolvent.events.description import Description
from resolvent.events.steps import EventSteps

STEPS = EventSteps(
    np.zeros(6, np.int32),
    np.array([0, 1, 0, 2, 3, 4], np.int32),
    np.array([0, 6], np.int64),
    np.array([0, 0, 1, 1, 1]),
    4,
)
"""One question with two answers and one with three."""


def test_answers_are_written_by_how_often_they_were_given_before():
    """Two answers of the first, one of the second, one after the other, each beginning at 0.1."""
    one_by_one = -log(0.1 / 0.2) - log(1.1 / 1.2) - log(0.1 / 2.2)
    length = Description(STEPS).of_answers(np.array([2, 1, 0, 0, 0]))
    assert length == pytest.approx(one_by_one)


def test_the_order_in_which_answers_were_given_makes_no_difference():
    other_order = -log(0.1 / 0.2) - log(0.1 / 1.2) - log(1.1 / 2.2)
    assert Description(STEPS).of_answers(np.array([2, 1, 0, 0, 0])) == pytest.approx(other_order)


def test_questions_are_written_apart():
    description = Description(STEPS)
    apart = description.of_answers(np.array([[2, 1, 0, 0, 0], [0, 0, 1, 1, 0]])).sum()
    assert description.of_answers(np.array([2, 1, 1, 1, 0])) == pytest.approx(apart)


def test_a_class_is_written_once_for_all_its_events():
    stays, moves = [0, 1], [1, 1]
    description = Description(STEPS)
    none = description.of_table(np.array([stays] * 4))
    one = description.of_table(np.array([moves, stays, stays, stays]))
    two = description.of_table(np.array([moves, moves, stays, stays]))
    assert none == pytest.approx(2.0)
    assert one - none == pytest.approx(log(4) + log(2) + log(4))
    assert two - one == pytest.approx(log(4) + log(2))
