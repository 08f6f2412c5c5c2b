"""Actions that undo others, and the assumed outcomes of untried steps."""

import numpy as np
import pytest

from resolvent.exploration.optimistic_model import MIN_INVERSES, with_inverse_steps

RIGHT, DOWN, LEFT, UP = range(4)
SIDE = 6


def at(x, y):
    return x + SIDE * y


def grid():
    """Where each action leads on a square, from every cell; a wall leads nowhere else."""
    outcomes = np.full((SIDE * SIDE, 4, 1), -1, np.int32)
    for x in range(SIDE):
        for y in range(SIDE):
            for action, (dx, dy) in enumerate([(1, 0), (0, 1), (-1, 0), (0, -1)]):
                to_x, to_y = x + dx, y + dy
                inside = 0 <= to_x < SIDE and 0 <= to_y < SIDE
                outcomes[at(x, y), action] = at(to_x, to_y) if inside else at(x, y)
    return outcomes


def known_outcomes(outcomes, cell, action):
    return [one for one in with_inverse_steps(outcomes)[cell, action].tolist() if one >= 0]


def test_an_untried_step_is_assumed_to_undo_another():
    outcomes = grid()
    outcomes[at(2, 2), LEFT] = -1
    assert known_outcomes(outcomes, at(2, 2), LEFT) == [at(1, 2)]


def test_a_blocked_step_may_still_undo_another():
    outcomes = grid()
    outcomes[at(2, 2), LEFT] = at(2, 2)
    assert known_outcomes(outcomes, at(2, 2), LEFT) == [at(2, 2), at(1, 2)]


def test_nothing_is_added_where_all_is_known():
    outcomes = grid()
    more = with_inverse_steps(outcomes)
    assert np.array_equal(more[:, :, :1], outcomes)
    assert (more[:, :, 1] == -1).all()


def test_a_one_way_ring_has_no_inverse_steps():
    ring = np.full((60, 1, 1), -1, np.int32)
    ring[:59, 0, 0] = np.arange(1, 60)
    assert known_outcomes(ring, 59, 0) == []


@pytest.mark.parametrize("seed", range(3))
def test_random_steps_have_no_inverse(seed):
    outcomes = np.random.default_rng(seed).integers(200, size=(200, 4, 1)).astype(np.int32)
    outcomes[::3, 1] = -1
    assert (with_inverse_steps(outcomes)[:, :, 1] == -1).all()
    assert (with_inverse_steps(outcomes)[::3, 1] == -1).all()


def test_a_few_cases_are_not_enough():
    few = MIN_INVERSES - 1
    corridor = np.full((few + 1, 2, 1), -1, np.int32)
    corridor[:-1, 0, 0], corridor[1:, 1, 0] = np.arange(1, few + 1), np.arange(few)
    corridor[few, 1] = -1
    assert known_outcomes(corridor, few, 1) == []
