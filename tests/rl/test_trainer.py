import math

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import FrameStackObservation, TimeLimit, TransformReward

import resolvent as rs
from resolvent import _core
from resolvent.planning.model import Model
from resolvent.worlds import House, TMaze
from table_worlds import pair, world

CHAIN = {
    # Right along three states, where the last step has reward 1 and ends; left stays.
    "following": [[0, 1], [1, 2], [2, 2]],
    "reward": [[0, 0], [0, 0], [0, 1]],
    "ends": [[False, False], [False, False], [False, True]],
}
RIGHT = 1


@pytest.fixture(scope="module")
def house():
    env = gym.make("resolvent/House-v0")
    traces = rs.collect(env, episodes=200, seed=0)
    pair = rs.infer(traces).machines
    return env, pair, Model.of(pair, traces)


# ---- the learner -----------------------------------------------------------


def taught(alpha=0.5, gamma=0.9, potentials=(0.0, 0.0, 0.0)):
    learner = _core.QLearner(2, alpha, gamma, 0)
    for potential in potentials:
        learner.add(potential)
    return learner


def values(learner):
    return learner.values().reshape(-1, 2).tolist()


def test_updates_on_a_chain_by_hand():
    learner = taught()
    learner.update(2, RIGHT, 1.0, 2, True)
    assert values(learner) == [[0, 0], [0, 0], [0, 0.5]]
    learner.update(1, RIGHT, 0.0, 2, False)
    assert values(learner) == [[0, 0], [0, 0.5 * 0.9 * 0.5], [0, 0.5]]
    learner.update(2, RIGHT, 1.0, 2, True)
    assert values(learner)[2] == [0, 0.75]
    learner.update(1, 0, 0.25, 1, False)  # stays, with a reward
    assert values(learner)[1] == [pytest.approx(0.5 * (0.25 + 0.9 * 0.225)), 0.225]


def test_a_shaped_update_by_hand():
    learner = taught(alpha=1.0, potentials=(1.0, 2.0, 3.0))
    learner.update(0, RIGHT, 0.5, 1, False)  # 0.5 + 0.9 · 2 − 1
    learner.update(2, RIGHT, 0.5, 0, True)  # the end has potential 0: 0.5 − 3
    assert values(learner)[0] == [0, pytest.approx(1.3)]
    assert values(learner)[2] == [0, -2.5]


def test_ties_are_random_and_better_actions_are_always_taken():
    learner = taught()
    drawn = [learner.choose(0, 0.0) for _ in range(4000)]
    assert 1800 < sum(drawn) < 2200
    learner.update(0, RIGHT, 1.0, 0, True)
    assert {learner.choose(0, 0.0) for _ in range(200)} == {RIGHT}


def test_epsilon_is_the_probability_of_a_random_action():
    learner = taught()
    learner.update(0, RIGHT, 1.0, 0, True)
    lefts = sum(learner.choose(0, 0.3) == 0 for _ in range(10_000))
    assert 1350 < lefts < 1650  # half of the random actions


def test_counterfactual_steps_are_the_known_steps_of_other_states():
    """Rows 0, 1 and 2 have the same observation, 3 has another."""
    known = _core.known_steps(
        np.array([0, 0, 0, 1], np.int32),
        2,
        np.array([3, -1, 3, -1, -1, -1, 3, -1], np.int32),
        np.array([1.0, 0, 2.0, 0, 3.0, 0, 4.0, 0]),
        np.array([1, 0, 1, 0, 2, 0, 1, 0], np.int32),
        2,
    )
    learner = taught(alpha=1.0, gamma=0.5)
    learner.add()
    learner.update(3, 1, 10.0, 3, True)
    learner.learn_counterfactual(known, 0, 0, 1)  # 1 is the real step
    assert values(learner) == [[1.0 + 0.5 * 10.0, 0], [0, 0], [3.0, 0], [0, 10.0]]
    learner.learn_counterfactual(known, 0, 1, 1)  # the other action is unknown
    assert values(learner)[:3] == [[6.0, 0], [0, 0], [3.0, 0]]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda learner: learner.choose(3, 0.1),
        lambda learner: learner.choose(-1, 0.1),
        lambda learner: learner.update(0, 2, 0.0, 0, False),
        lambda learner: learner.update(3, 0, 0.0, 0, False),
        lambda learner: learner.update(0, 0, 0.0, 3, False),
        lambda learner: _core.QLearner(0, 0.1, 0.9, 0),
    ],
)
def test_the_core_refuses_unknown_rows_and_actions(wrong):
    with pytest.raises(ValueError, match=r"action|state"):
        wrong(taught())


# ---- what is learned -------------------------------------------------------


def test_values_on_a_chain_become_exact():
    learned = rs.q_learning(
        world(**CHAIN), episodes=400, gamma=0.5, alpha=0.5, epsilon=1.0, epsilon_decay=1.0
    )
    assert learned.observations == (0, 1, 2)
    assert learned.q == pytest.approx(np.array([[0.125, 0.25], [0.25, 0.5], [0.5, 1.0]]))
    assert [learned.action(state) for state in range(3)] == [RIGHT] * 3


def test_with_machine_states_the_house_is_solved(house):
    env, pair, _ = house
    wrapped = rs.AugmentObservation(env, pair)
    learned = rs.q_learning(wrapped, episodes=300)
    found = learned.evaluate(wrapped)
    assert found.exact
    assert found.ended == 1
    assert found.value == pytest.approx(0.95**5)  # left, right, up, down, right, sit
    assert learned.evaluate(wrapped, episodes=3).value == pytest.approx(0.95**5)
    blind = rs.q_learning(env, episodes=300, max_steps=500)
    assert blind.evaluate(env).value < 0.5


def test_values_are_those_of_the_true_states():
    maze = gym.make("resolvent/TMaze-v0")
    wrapped = rs.AugmentObservation(maze, maze.unwrapped.machines(), mode="discrete")
    learned = rs.q_learning(
        wrapped, episodes=300, alpha=1.0, epsilon=1.0, epsilon_decay=1.0, max_steps=300
    )
    tables = maze.unwrapped.mechanics
    best = tables.optimal_values(0.95)[: tables.live]
    assert sorted(learned.q.max(axis=1)) == pytest.approx(sorted(best))


def test_a_truncated_episode_bootstraps():
    """In episodes of one step, the second one leads to a learned value."""
    env = world(**CHAIN, starts=(2, 1, 0))
    learned = rs.q_learning(
        env, episodes=500, alpha=1.0, gamma=0.5, epsilon=1.0, epsilon_decay=1.0, max_steps=1
    )
    assert set(learned.curve.steps.tolist()) == {1}
    best = dict(zip(learned.observations, learned.q.max(axis=1), strict=True))
    assert best == pytest.approx({0: 0.25, 1: 0.5, 2: 1.0})


def test_a_time_limit_truncates_as_max_steps_does(house):
    env, pair, _ = house
    wrapped = rs.AugmentObservation(env, pair)
    limited = rs.q_learning(TimeLimit(wrapped, 7), episodes=30)
    cut = rs.q_learning(wrapped, episodes=30, max_steps=7)
    assert limited.engine == cut.engine == "native"
    assert limited.q.tobytes() == cut.q.tobytes()
    assert max(limited.curve.steps) == 7


def test_the_curve_by_hand():
    learned = rs.q_learning(
        world(**CHAIN), episodes=6, epsilon=0.5, epsilon_decay=0.5, epsilon_min=0.1, gamma=0.5
    )
    curve = learned.curve
    assert curve.epsilons.tolist() == [0.5, 0.25, 0.125, 0.1, 0.1, 0.1]
    assert curve.returns.tolist() == [1.0] * 6
    assert curve.discounted_returns.tolist() == [0.5 ** (steps - 1) for steps in curve.steps]
    assert curve.total_steps.tolist() == np.cumsum(curve.steps).tolist()


def test_the_same_seed_gives_the_same_values():
    env = gym.make("resolvent/PhaseGrid3-v0")
    first, again, other = (
        rs.q_learning(env, episodes=20, max_steps=40, seed=seed) for seed in (5, 5, 6)
    )
    assert first.q.tobytes() == again.q.tobytes()
    assert first.curve.columns() == again.curve.columns()
    assert first.curve.columns() != other.curve.columns()


def test_an_environment_without_tables():
    env = gym.make("FrozenLake-v1", is_slippery=False)
    learned = rs.q_learning(env, episodes=400, epsilon=1.0, epsilon_decay=0.99)
    assert learned.engine == "python"
    assert learned.evaluate(env, episodes=2).value == pytest.approx(0.95**5)


def test_actions_that_do_not_begin_at_0():
    class Shifted(gym.Env):
        observation_space = gym.spaces.Discrete(1)
        action_space = gym.spaces.Discrete(3, start=5)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return 0, {}

        def step(self, action):
            return 0, float(action == 6), True, False, {}

    learned = rs.q_learning(Shifted(), episodes=50, epsilon=1.0)
    assert learned.action(0) == 6


def test_a_reward_that_is_no_number_is_located():
    env = TransformReward(world(**CHAIN), lambda reward: math.nan)
    with pytest.raises(rs.TraceError, match=r"episode 0: the reward is nan"):
        rs.q_learning(env, episodes=2)


def test_progress_is_reported():
    told = []
    rs.q_learning(world(**CHAIN), episodes=4, progress=told.append)
    assert told == [0.25, 0.5, 0.75, 1.0]


# ---- engines ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrap", "engine"),
    [
        (lambda env, pair: env, "native"),
        (lambda env, pair: rs.AugmentObservation(env, pair, mode="flatten"), "native"),
        (lambda env, pair: FrameStackObservation(env, 3), "native"),
        (lambda env, pair: FrameStackObservation(env, 3, padding_type="zero"), "python"),
        (lambda env, pair: rs.AugmentObservation(env, pair, on_unseen="raise"), "python"),
        (lambda env, pair: rs.AugmentObservation(env, pair, labeling_fn=lambda o: set()), "python"),
        (lambda env, pair: TransformReward(env, lambda reward: -reward), "python"),
        (lambda env, pair: FrameStackObservation(rs.AugmentObservation(env, pair), 2), "python"),
    ],
)
def test_only_transparent_wrappers_allow_the_native_engine(house, wrap, engine):
    env, pair, _ = house
    wrapped = wrap(env, pair)
    assert rs.q_learning(wrapped, episodes=2, max_steps=9).engine == engine
    if engine == "python":
        with pytest.raises(rs.OptionError, match="engine='native'"):
            rs.q_learning(wrapped, episodes=2, max_steps=9, engine="native")
        with pytest.raises(rs.OptionError, match="evaluate_every"):
            rs.q_learning(wrapped, episodes=2, max_steps=9, evaluate_every=1)


def test_an_overridden_step_is_called():
    class Odd(House):
        def step(self, action):
            observation, reward, *rest = super().step(action)
            return observation, reward + 1, *rest

    assert rs.q_learning(Odd(), episodes=2, max_steps=9).engine == "python"


# ---- evaluation ------------------------------------------------------------


def test_the_value_of_a_cycle_is_a_geometric_series():
    """From 0 to 1 to 2 to 1 …, with rewards 5, then 1 and 2 in turns; 3 goes straight to the end."""
    env = world([[1], [2], [1], [3]], [[5], [1], [2], [7]], [[0], [0], [0], [1]], starts=(0, 3, 2))
    learned = rs.q_learning(env, episodes=3, gamma=0.5, max_steps=20, evaluate_every=3)
    one = (1 + 0.5 * 2) / (1 - 0.25)
    two = 2 + 0.5 * one
    expected = (5 + 0.5 * one + 7 + two) / 3
    found = learned.evaluate(env)
    assert (found.value, found.ended) == (pytest.approx(expected), pytest.approx(1 / 3))
    assert learned.evaluations[0].value == found.value
    assert learned.evaluations[0].episode == 3
    assert learned.evaluations[0].steps == learned.curve.steps.sum()


def test_the_value_of_a_cycle_without_discount():
    env = world([[0], [1]], [[0], [-1]], [[0], [0]])
    assert rs.q_learning(env, episodes=1, gamma=1.0, max_steps=3).evaluate(env).value == 0
    env = world([[0], [1]], [[0], [-1]], [[0], [0]], starts=(1,))
    assert rs.q_learning(env, episodes=1, gamma=1.0, max_steps=3).evaluate(env).value == -math.inf


def test_an_unknown_observation_gets_the_first_action():
    env = world(**CHAIN)
    learned = rs.q_learning(env, episodes=1)
    assert learned.action(99) == 0
    other = gym.make("resolvent/House-v0")
    assert learned.evaluate(other, episodes=1, max_steps=3).value == 0  # up, for ever
    assert learned.evaluate(FrameStackObservation(env, 2)).ended == 0


# ---- options ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "word"),
    [
        ({"episodes": 0}, "episodes"),
        ({"max_steps": 0}, "max_steps"),
        ({"evaluate_every": 0}, "evaluate_every"),
        ({"seed": -1}, "seed"),
        ({"alpha": 1.5}, "alpha"),
        ({"gamma": math.nan}, "gamma"),
        ({"epsilon": -0.1}, "epsilon"),
        ({"epsilon_decay": 2}, "epsilon_decay"),
        ({"epsilon_min": 1.1}, "epsilon_min"),
        ({"initial_value": math.inf}, "initial_value"),
        ({"engine": "fast"}, "'native'"),
        ({"counterfactual": True}, "Model.of"),
        ({"shaping": True}, "Model.of"),
    ],
)
def test_invalid_options_are_refused(option, word):
    with pytest.raises(rs.OptionError, match=word):
        rs.q_learning(world(**CHAIN), **{"episodes": 1, "max_steps": 5, **option})


def test_a_model_needs_visible_machines(house):
    env, pair, model = house
    with pytest.raises(rs.OptionError, match="AugmentObservation"):
        rs.q_learning(env, episodes=1, model=model, shaping=True)
    stacked = FrameStackObservation(rs.AugmentObservation(env, pair), 2)
    with pytest.raises(rs.OptionError, match="AugmentObservation"):
        rs.q_learning(stacked, episodes=1, model=model, counterfactual=True)
    with pytest.raises(rs.OptionError, match="below 1"):
        rs.q_learning(
            rs.AugmentObservation(env, pair), episodes=1, gamma=1.0, model=model, shaping=True
        )


def test_a_model_of_another_world_is_refused(house):
    env, _, model = house
    maze = TMaze()
    wrapped = rs.AugmentObservation(maze, maze.machines())
    with pytest.raises(rs.errors.ModelError, match="corridor"):
        rs.q_learning(wrapped, episodes=1, model=model, counterfactual=True)
    small = pair([[0]], [[0]], ["key"], rs.LabelTiming.CURRENT)
    with pytest.raises(rs.errors.ModelError, match="states"):
        rs.q_learning(
            rs.AugmentObservation(env, small), episodes=1, model=model, counterfactual=True
        )


def test_only_single_environments_with_discrete_actions():
    with pytest.raises(rs.OptionError, match=r"gym\.make"):
        rs.q_learning(gym.make_vec("resolvent/House-v0", num_envs=2))
    with pytest.raises(rs.OptionError, match="Discrete"):
        rs.q_learning(gym.make("Pendulum-v1"))
