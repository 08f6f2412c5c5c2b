"""Actions that undo others, and what that says of steps that nobody has taken."""

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


def told(outcomes, cell, action):
    return [one for one in with_inverse_steps(outcomes)[cell, action].tolist() if one >= 0]


def test_a_step_that_nobody_took_is_taken_to_undo_another():
    outcomes = grid()
    outcomes[at(2, 2), LEFT] = -1
    assert told(outcomes, at(2, 2), LEFT) == [at(1, 2)]


def test_a_step_that_was_blocked_may_lead_to_what_it_would_undo():
    outcomes = grid()
    outcomes[at(2, 2), LEFT] = at(2, 2)
    assert told(outcomes, at(2, 2), LEFT) == [at(2, 2), at(1, 2)]


def test_nothing_is_added_where_all_is_known():
    outcomes = grid()
    more = with_inverse_steps(outcomes)
    assert np.array_equal(more[:, :, :1], outcomes)
    assert (more[:, :, 1] == -1).all()


def test_a_way_that_only_leads_on_has_no_way_back():
    ring = np.full((60, 1, 1), -1, np.int32)
    ring[:59, 0, 0] = np.arange(1, 60)
    assert told(ring, 59, 0) == []


@pytest.mark.parametrize("seed", range(3))
def test_no_rule_is_found_in_what_is_random(seed):
    outcomes = np.random.default_rng(seed).integers(200, size=(200, 4, 1)).astype(np.int32)
    outcomes[::3, 1] = -1
    assert (with_inverse_steps(outcomes)[:, :, 1] == -1).all()
    assert (with_inverse_steps(outcomes)[::3, 1] == -1).all()


def test_a_rule_takes_more_than_a_few_cases():
    few = MIN_INVERSES - 1
    corridor = np.full((few + 1, 2, 1), -1, np.int32)
    corridor[:-1, 0, 0], corridor[1:, 1, 0] = np.arange(1, few + 1), np.arange(few)
    corridor[few, 1] = -1
    assert told(corridor, few, 1) == []
