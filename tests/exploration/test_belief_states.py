"""Plans on beliefs in stochastic worlds with hidden state."""

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from resolvent.exploration.belief_states import HiddenStates, plan_value
from resolvent.inference.context import ACTION_OBSERVATION
from resolvent.preprocess.transform import Preprocessor

TIGER_OPTIMUM = 19.37  # discounted by 0.95, by value iteration over beliefs
MAZE_OPTIMUM = 0.846


class Tiger(gym.Env):
    """Listen for a tiger behind one of two doors; the tiger moves after a door was opened."""

    observation_space = gym.spaces.Discrete(3)  # nothing, left, right
    action_space = gym.spaces.Discrete(3)  # listen, open left, open right

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.tiger = int(self.np_random.integers(2))
        return 0, {}

    def step(self, action):
        if action == 0:
            is_wrong = self.np_random.random() < 0.15
            return 1 + (self.tiger ^ int(is_wrong)), -1.0, False, False, {}
        reward = -100.0 if action - 1 == self.tiger else 10.0
        self.tiger = int(self.np_random.integers(2))
        return 0, reward, False, False, {}


class CheeseMaze(gym.Env):
    """McCallum's maze: start anywhere, see the walls around, find the cheese."""

    cells = (*((0, x) for x in range(5)), *((y, x) for y in (1, 2) for x in (0, 2, 4)))
    moves = ((-1, 0), (1, 0), (0, -1), (0, 1))
    observation_space = gym.spaces.Discrete(17)
    action_space = gym.spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        others = [cell for cell in self.cells if cell != (2, 2)]
        self.at = others[self.np_random.integers(len(others))]
        return self._seen(), {}

    def step(self, action):
        there = self._beside(self.moves[action])
        self.at = there if there in self.cells else self.at
        is_over = self.at == (2, 2)
        return self._seen(), float(is_over), is_over, False, {}

    def _beside(self, move):
        return self.at[0] + move[0], self.at[1] + move[1]

    def _seen(self):
        if self.at == (2, 2):
            return 16
        return sum(2**i for i, move in enumerate(self.moves) if self._beside(move) in self.cells)


def random_tiger(steps):
    """Return a model of random steps, and the function that makes plans."""
    traces = rs.collect(Tiger(), episodes=steps // 40, seed=0, max_steps=40, labels="observation")
    hidden = HiddenStates.fit(traces, Preprocessor(ACTION_OBSERVATION), seed=0)
    return traces, hidden, lambda machines: rs.plan(machines, hidden.traces)


def test_a_plan_from_random_steps_listens_until_it_is_sure():
    _, hidden, make_plan = random_tiger(8_000)
    plan = hidden.best_plan(make_plan)
    assert plan.value == pytest.approx(plan_value(plan, hidden.model, hidden.traces), rel=0.3)
    machine = plan.machines.transition
    assert machine.states < 100
    before, once = (machine.run([{"→ 0"}, *({"0 → 1"},) * times]) for times in range(2))
    assert (plan.action(0, before, before), plan.action(1, once, once)) == (0, 0)
    runs = plan.run(Tiger(), episodes=50, seed=1, max_steps=100)
    assert runs.discounted_returns.mean() > 0  # a random policy has −600


def test_beliefs_predict_better_than_a_machine_with_one_state():
    traces, hidden, _ = random_tiger(4_000)
    test = traces.take(np.arange(3, len(traces), 4))
    single = rs.infer(traces.take(np.arange(2)), labels="action").machines
    assert hidden.predicts_better(single, test)


def test_no_hidden_states_where_observations_are_states():
    env = gym.make("FrozenLake-v1", is_slippery=True)
    traces = rs.collect(env, episodes=150, seed=0, labels="observation")
    assert HiddenStates.fit(traces, Preprocessor(ACTION_OBSERVATION), seed=0) is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("world", "optimum"), [(Tiger, TIGER_OPTIMUM), (CheeseMaze, MAZE_OPTIMUM)])
def test_solve_is_paid_nearly_the_optimum(world, optimum, seed):
    solution = rs.solve(world(), budget=20_000, seed=seed)
    # Episodes of Tiger vary by ±20, so that 4,000 of them have a standard error of 0.3.
    runs = solution.plan.run(world(), episodes=4_000, seed=10 + seed, max_steps=150)
    assert runs.discounted_returns.mean() >= 0.95 * optimum
