"""Value bounds, and the outcomes that unknown steps are assumed to have."""

import numpy as np
import pytest

from resolvent.exploration.buffer import ABANDONED, TERMINATED, Buffer
from resolvent.exploration.empirical_model import EmpiricalModel, Outcome
from resolvent.exploration.state import LearnerConfig
from resolvent.exploration.tables import TransitionTables
from resolvent.exploration.values import (
    MAX_OUTCOMES,
    MIN_INVERSES,
    observed_outcomes,
    optimistic_model,
    value_bounds,
    with_inverse_steps,
)
from resolvent.preprocess.timing import LabelTiming

HALL, DOOR, GOAL, TOWER = range(4)
NOTHING, BELL, THERE = range(3)
WAIT, ON, RING = range(3)


def record(log, end, *steps, start=HALL):
    """Record an episode that begins in the hall: of (action, reward, observation, label)."""
    episode = log.begin(0, start, NOTHING)
    for step in steps:
        episode.step(*step)
    log.close(0, end)


RUNG = (RING, 0.0, TOWER, BELL), (WAIT, 0.0, HALL, NOTHING)
THROUGH = (ON, 0.0, DOOR, NOTHING), (ON, 1.0, GOAL, THERE)


@pytest.fixture
def hall():
    """A hall, a door, a goal and a tower; the door is shut until the bell in the tower was rung.

    Nobody has come to the door after that.
    """
    log = Buffer(["wait", "on", "ring"])
    for name in ("hall", "door", "goal", "tower"):
        log.observations.code(name)
    for name in ((), ("bell",), ("there",)):
        log.labels.code(frozenset(name))
    stay, on = (WAIT, 0.0, HALL, NOTHING), (ON, 0.0, DOOR, NOTHING)
    record(log, ABANDONED, stay, on, on)
    record(log, ABANDONED, *RUNG, stay)
    return log, tables_of([[0, 1, -1], [1, -1, 1]])


def tables_of(moves):
    tables = np.array(moves, np.int32), np.array([[0, 0, 0]], np.int32)
    return TransitionTables(("transition", "reward"), tables, LabelTiming.CURRENT)


def known_of(log, tables):
    return EmpiricalModel.of_steps(tables, log)


def test_an_untried_step_is_assumed_to_have_the_outcome_of_another_state(hall):
    log, tables = hall
    model = known_of(log, tables)
    known = model.known_steps(0.5)
    world = optimistic_model(model, known, 0.0)
    rung = HALL * 2 + 1  # the hall in the second state
    columns = world.next_number[rung].reshape(3, world.width)
    assert columns[ON, 0] == DOOR * 2 + 1
    assert known.is_known[model.rows[HALL, 1, 0], [WAIT, ON]].tolist() == [True, False]
    assert columns[WAIT, 0] == rung


def test_a_step_without_effect_may_have_one_in_another_state(hall):
    log, tables = hall
    model = known_of(log, tables)
    novelty = optimistic_model(model, model.known_steps(0.5), 0.0).novelty
    assert novelty[DOOR * 2, ON] == 0  # it was tried there
    assert novelty[DOOR * 2 + 1, ON] == pytest.approx(1 / 2)  # tried in one other state
    assert novelty[DOOR * 2 + 1, WAIT] == 1  # never tried at all
    assert novelty[HALL * 2 + 1, ON] == 0  # it led somewhere


def test_a_label_that_was_never_read_in_a_state_leads_to_the_best_one(hall):
    log, _ = hall
    record(log, TERMINATED, *RUNG, *THROUGH)
    # In the second state, which the bell leads to, the way through the door is known. In the
    # first the door is shut, and in the third nobody has rung the bell.
    model = known_of(log, tables_of([[0, 1, -1], [1, -1, 1], [2, -1, 2]]))
    world = optimistic_model(model, model.known_steps(0.5), 0.0)
    third = HALL * 3 + 2
    assert world.anywhere[third].reshape(3, world.width)[RING].tolist() == [True, False, False]
    assert world.novelty[third, RING] == 1
    solved, following = world.solve()
    assert following[third].reshape(3, world.width)[RING, 0] == TOWER * 3 + 1
    assert solved.value[TOWER * 3 + 1] == 0.5**2  # back in the hall, to the door, and through it
    assert not world.anywhere[HALL * 3].any()  # there it is known where the bell leads


def test_the_best_of_several_outcomes_is_assumed(hall):
    log, _ = hall
    record(log, TERMINATED, *RUNG, *THROUGH)
    record(log, ABANDONED, *RUNG, *RUNG)  # a third state, in which the door was never tried
    model = known_of(log, tables_of([[0, 1, -1], [1, 2, 1], [2, -1, 2]]))
    world = optimistic_model(model, model.known_steps(0.5), 0.0)
    door = world.next_number[DOOR * 3 + 2].reshape(3, world.width)[ON]
    assert door.tolist() == [DOOR * 3 + 2, -1, -1]  # shut as at first, or through it to the end
    solved, _ = world.solve()
    assert solved.value[DOOR * 3 + 2] == 1
    assert solved.value[HALL * 3 + 2] == 0.5


def test_assumptions_decide_which_steps_a_plan_relies_on(hall):
    log, _ = hall
    record(log, TERMINATED, *RUNG, *THROUGH)
    # An episode that begins where the way on is not known.
    record(log, ABANDONED, (RING, 0.0, TOWER, NOTHING), start=TOWER)
    model = known_of(log, tables_of([[0, 1, -1], [1, -1, 1]]))
    values = value_bounds(model, LearnerConfig(0.9, 0, None, 0.0, None))
    assert values.value[model.rows[HALL, 0, 0]] == pytest.approx(0.9**3)
    assert values.relied_on == [(model.rows[TOWER, 0, 0], WAIT)]


@pytest.mark.parametrize("seed", range(3))
def test_outcomes_are_the_first_few_in_the_order_of_occurrence(seed):
    rng = np.random.default_rng(seed)
    log = Buffer(["a", "b", "c"])
    for number in range(90):
        log.observations.code(number)
    label = log.labels.code(frozenset())
    tables = TransitionTables(
        ("transition", "reward"), (np.zeros((4, 1), np.int32),) * 2, LabelTiming.CURRENT
    )
    model = EmpiricalModel(tables, log, 0.0)
    in_state, in_any = {}, {}
    for _ in range(600):
        observation, action, state = (int(rng.integers(most)) for most in (90, 3, 4))
        # What follows is fixed by state, observation and action, as in a deterministic world.
        led = (observation * 7 + action * 5 + state * 31) % 90
        row = model.row((observation, state, 0))
        model.add_step(row, action, Outcome(led, label, label, 0.0, False))
        in_state[state, observation, action] = led
        outcomes = in_any.setdefault((observation, action), [])
        if led not in outcomes:
            outcomes.append(led)
    states, anywhere = observed_outcomes(model, 90)
    assert {tuple(at): states[tuple(at)] for at in np.argwhere(states >= 0).tolist()} == in_state
    for (observation, action), outcomes in in_any.items():
        few = outcomes[:MAX_OUTCOMES]
        padded = few + [-1] * (MAX_OUTCOMES - len(few))
        assert anywhere[observation, action].tolist() == padded


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
