"""`solve` in environments with invalid values, unusual symbols, truncation and equal rewards."""

from fractions import Fraction

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import resolvent as rs


class Corridor(gym.Env):
    """Five cells; whoever takes a key on the left is paid at the door on the right.

    Nothing shows whether one has it, and taking it changes nothing that is seen.
    """

    observation_space, action_space = spaces.Discrete(5), spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.key, self.steps = 2, False, 0
        return self.see(), {}

    def see(self):
        return self.at

    def step(self, action):
        self.steps += 1
        opened = action == 2 and self.at == 4 and self.key
        self.key |= action == 2 and self.at == 0
        if action < 2:
            self.at = min(max(self.at + 2 * int(action) - 1, 0), 4)
        return self.see(), float(opened), opened, False, {}


VALUE = 0.95**7
"""Two steps to the key, one to take it, four to the door, and the eighth is paid."""


class Pictures(Corridor):
    """Shows a dictionary with an image."""

    observation_space = spaces.Dict(
        {"image": spaces.Box(0, 255, (2, 2), np.uint8), "bits": spaces.MultiBinary(3)}
    )

    def see(self):
        return {
            "image": np.full((2, 2), self.at, np.uint8),
            "bits": np.array([self.at >> bit & 1 for bit in range(3)], np.int8),
        }


class Pairs(Corridor):
    """Shows a tuple, and takes two numbers."""

    observation_space = spaces.Tuple((spaces.Discrete(5), spaces.MultiDiscrete([3, 3])))
    action_space = spaces.MultiDiscrete([3, 1])

    def see(self):
        return self.at, np.array([self.at // 2, self.at % 2])

    def step(self, action):
        return super().step(int(action[0]))


class Sentences(Corridor):
    """Shows a text."""

    observation_space = spaces.Text(100)

    def see(self):
        return f"You are in room {self.at}."


class Buffers(Corridor):
    """Shows one array, over and over, and pays fractions."""

    observation_space = spaces.Box(0, 1, (2,), np.float32)
    shown = np.zeros(2, np.float32)

    def see(self):
        self.shown[:] = self.at / 4, 1 - self.at / 4
        return self.shown

    def step(self, action):
        seen, paid, *rest = super().step(action)
        return seen, Fraction(paid), *rest


@pytest.mark.parametrize("make", [Corridor, Pictures, Pairs, Sentences, Buffers])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_actions_become_labels_if_states_outnumber_labels(make, seed):
    """With labels of what is seen alone, machines grow and grow: 3,138 to 5,420 steps before."""
    solved = rs.solve(make(), seed=seed)
    assert solved.optimal
    assert solved.value == pytest.approx(VALUE)
    assert solved.steps < 800
    assert solved.states == {"transition": 1, "reward": 2}
    assert solved.machines.preprocessor.labeling.reads == "action+observation"
    assert solved.plan.run(make(), episodes=3, seed=1).returns.min() == 1


class Wrong(Corridor):
    """Gives something wrong at the third step."""

    def __init__(self, **wrong):
        self.wrong = wrong

    def step(self, action):
        names = "seen", "reward", "terminated", "truncated", "info"
        returned = dict(zip(names, super().step(action), strict=True))
        return tuple({**returned, **(self.wrong if self.steps == 3 else {})}.values())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"info": None}, "the info is None: it has to be a dict"),
        ({"seen": float("nan")}, "the observation: nan cannot be a symbol"),
        ({"reward": "high"}, "the reward is 'high'; rewards must be numbers"),
        ({"more": 1}, r"has to return \(observation, reward, terminated, truncated, info\)"),
    ],
    ids=lambda one: "" if isinstance(one, str) else next(iter(one)),
)
def test_invalid_values_are_named(wrong, message):
    with pytest.raises(rs.errors.EnvironmentFailed, match=rf"episode 0: step 2: .*{message}"):
        rs.solve(Wrong(**wrong))


@pytest.mark.parametrize("missing", ["action_space", "observation_space"])
def test_an_environment_without_spaces_is_refused(missing):
    class Bare(gym.Env):
        action_space = observation_space = spaces.Discrete(2)

    setattr(Bare, missing, None)
    for call in (rs.solve, rs.Explorer):
        with pytest.raises(rs.OptionError, match=rf"the environment Bare has no {missing}"):
            call(Bare())


class Cuts(Corridor):
    """Calls the end a cut, and cuts after 30 steps, too."""

    ends = False

    def step(self, action):
        seen, paid, over, _, info = super().step(action)
        return seen, paid, over and self.ends, over or self.steps == 30, info


class CutsLate(Cuts):
    """Ends, and cuts after 30 steps."""

    ends = True


def test_a_step_that_is_always_truncated_is_named():
    solved = rs.solve(Cuts())
    assert solved.value > 10
    assert "2 in 4 (transition state 0, reward state 1)" in solved.statement.cut
    assert "if this is an end, return terminated=True" in solved.why_stopped
    late = rs.solve(CutsLate())
    assert late.value == pytest.approx(VALUE)
    assert late.statement.cut is None


class Idle(Corridor):
    """Never pays, and never ends."""

    def step(self, action):
        return super().step(action)[0], 0.0, False, False, {}


def test_equal_rewards_give_no_bound(tmp_path):
    solved = rs.solve(Idle(), budget=500, folder=tmp_path / "kept")
    assert solved.statement.kind == "budget"
    assert "pass reward_range or increase the budget" in solved.why_stopped
    assert solved.bound == float("inf")
    assert solved.as_dict()["bound"] is None
    assert "bound        not known" in str(solved)
    assert rs.Solution.load(tmp_path / "kept").bound == float("inf")


def test_a_plan_for_named_observations_asks_for_observation_fn():
    solved = rs.solve(Sentences(), observation_fn=lambda text: int(text[-2]))
    with pytest.raises(
        rs.errors.ModelError, match="such as 0: if observation_fn made them, give it here, too"
    ):
        solved.plan.run(Sentences(), episodes=1)
