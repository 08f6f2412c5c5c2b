"""The core refuses tables that do not fit together."""

import numpy as np
import pytest

from resolvent import _core

FITTING = {
    # Two states, two actions, one label; machines with two and one states.
    "next_state": [0, 1, 1, 0],
    "ends": [0, 0, 0, 1],
    "actions": 2,
    "reward": [0.0, 0.0, 0.0, 1.0],
    "observation_of": [0, 1],
    "label_of": [0, 0],
    "labels": 1,
    "transition": [1, -1],
    "reward_transitions": [0],
    "reads_first": False,
    "lags": False,
    "stack": 0,
    "known": None,
    "known_observation": [],
    "potential": [],
}
REAL = ("reward", "potential")


def lessons(**changes):
    given = {**FITTING, **changes}
    arrays = {
        name: np.array(value, float if name in REAL else np.int32)
        for name, value in given.items()
        if isinstance(value, list)
    }
    return _core.tabular_trainer(**{**given, **arrays})


def known(**changes):
    given = {"observation": [0, 1], "next_state": [1, 0, -1, -1], "outcome": [1, 1, 2, 0]} | changes
    columns = {name: np.array(value, np.int32) for name, value in given.items()}
    return _core.known_steps(**columns, observations=2, reward=np.zeros(4), actions=2)


def test_valid_tables_are_played():
    tables, learner = lessons(), _core.QLearner(2, 0.5, 0.9, 0)
    tables.begin(learner, 0)
    while not tables.run(learner, 1.0, 10):
        pass
    assert tables.result[0] == 1.0
    assert tables.codes().reshape(-1, 3)[0].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "changes",
    [
        {"next_state": [0, 1, 1, 2]},
        {"next_state": [0, 1, 1, -1]},
        {"next_state": [0, 1]},
        {"ends": [0, 0, 0, 2]},
        {"actions": 0},
        {"reward": [0.0, 0.0, 0.0, float("nan")]},
        {"reward": [0.0]},
        {"label_of": [0, 1]},
        {"label_of": [0, -1]},
        {"label_of": [0]},
        {"transition": [2, 0]},
        {"transition": []},
        {"reward_transitions": [-2]},
        {"labels": 0},
        {"stack": -1},
        {"potential": [0.0]},
        {"potential": [0.0, float("inf")]},
        {"potential": [0.0, 0.0], "stack": 1},
        {"known": known()},
        {"known": known(), "known_observation": [0, 2]},
        {"known": known(), "known_observation": [0]},
        {"known": known(), "known_observation": [0, 1], "observation_of": [0, -1]},
        {"known": known(), "known_observation": [0, 1], "stack": 1},
    ],
)
def test_invalid_tables_are_refused(changes):
    with pytest.raises(ValueError, match=r"."):
        lessons(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"observation": [0, 2]},
        {"observation": [0]},
        {"next_state": [2, 0, -1, -1]},
        {"next_state": [-1, 0, -1, -1]},  # goes on without a next state
        {"outcome": [1, 1, 3, 0]},
    ],
)
def test_invalid_known_steps_are_refused(changes):
    with pytest.raises(ValueError, match=r"."):
        known(**changes)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda tables, learner: tables.begin(learner, 2),
        lambda tables, learner: tables.begin(_core.QLearner(3, 0.5, 0.9, 0), 0),
        lambda tables, learner: tables.add_states(np.zeros(4, np.int32)),
        lambda tables, learner: (learner.add(), tables.run(learner, 0.5, 1)),
        lambda tables, learner: tables.value_of(np.zeros(0, np.int32), 0.9, np.zeros(1, np.int32)),
        lambda tables, learner: tables.value_of(
            np.full(1, 2, np.int32), 0.9, np.zeros(1, np.int32)
        ),
        lambda tables, learner: tables.value_of(
            np.zeros(1, np.int32), 0.9, np.full(1, 2, np.int32)
        ),
        lambda tables, learner: learner.learn_counterfactual(
            known(), 0, 0, 0
        ),  # it has one of two situations
    ],
)
def test_objects_that_do_not_fit_together_are_refused(wrong):
    tables, learner = lessons(), _core.QLearner(2, 0.5, 0.9, 0)
    tables.begin(learner, 0)
    with pytest.raises(ValueError, match=r"."):
        wrong(tables, learner)


def test_nothing_is_played_before_an_episode_begins():
    tables, learner = lessons(), _core.QLearner(2, 0.5, 0.9, 0)
    assert tables.run(learner, 0.5, 100)
    assert tables.result == (0.0, 0.0, 0)
