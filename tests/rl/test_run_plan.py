"""A plan as a policy: `predict`, as Stable-Baselines3 calls it.

`Plan.run` is tested in tests/planning.
"""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from resolvent.worlds import House


class Cue(gym.Env[Any, Any]):
    """A cue at first, then a corridor; at its end the action that the cue names is rewarded."""

    observation_space = gym.spaces.Discrete(4)  # two cues, the corridor, the end
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.cue, self.position = int(self.np_random.integers(2)), 0
        return self.cue, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.position += 1
        is_over = self.position == 4
        reward = float(is_over and action == self.cue)
        return (3 if self.position == 3 else 2), reward, is_over, False, {}


def cue_plan(timing: str = "current-with-initial") -> rs.Plan:
    traces = rs.collect(Cue(), episodes=200, seed=0, labels="observation")
    return rs.plan(rs.infer(traces, labels="observation", timing=timing), traces)


def test_predict_remembers_the_cue() -> None:
    plan, env = cue_plan(), Cue()
    for seed in range(6):
        observation, _ = env.reset(seed=seed)
        state, total, is_over = None, 0.0, False
        while not is_over:
            action, state = plan.predict(np.int64(observation), state, deterministic=True)
            observation, reward, is_over, _, _ = env.step(action)
            total += reward
        assert total == 1


def test_the_start_of_an_episode_forgets() -> None:
    plan, state = cue_plan(), None
    for cue in (0, 1, 0):
        _, state = plan.predict(cue, state, np.array([True]))
        for observation in (2, 2, 3):
            action, state = plan.predict(observation, state, np.array([False]))
        assert action == cue


def test_predict_reads_the_states_in_an_augmented_observation() -> None:
    plan, env = cue_plan(), Cue()
    wrapped = rs.AugmentObservation(env, plan.machines)
    policy = plan.policy_in(wrapped)
    observation, _ = wrapped.reset(seed=0)
    is_over = False
    while not is_over:
        action, state = plan.predict(observation, "any")
        assert (action, state) == (policy(observation), "any")
        observation, _, is_over, _, _ = wrapped.step(action)


def test_parts_of_an_augmented_dict_observation() -> None:
    env = gym.wrappers.TransformObservation(
        Cue(), lambda seen: {"room": seen}, gym.spaces.Dict(room=gym.spaces.Discrete(4))
    )
    traces = rs.collect(env, episodes=200, seed=0, labels="observation")
    plan = rs.plan(rs.infer(traces, labels="observation", timing="current-with-initial"), traces)
    wrapped = rs.AugmentObservation(env, plan.machines)
    observation, _ = wrapped.reset(seed=0)
    assert plan.predict(observation)[0] == plan.predict({"room": env.unwrapped.cue})[0]


def test_labels_that_the_environment_reports_do_not_reach_predict() -> None:
    traces = rs.collect(House(), episodes=100, seed=0)
    plan = rs.plan(rs.infer(traces), traces)
    with pytest.raises(rs.OptionError, match=r"or use plan\.run\(env\)"):
        plan.predict("corridor")
    states = {"transition_state": 0, "reward_state": 0}
    assert plan.predict({"observation": "corridor", **states})[0] == "left"
    with pytest.raises(rs.errors.ModelError, match="cannot be reached"):
        plan.predict({"observation": 0, **states})
