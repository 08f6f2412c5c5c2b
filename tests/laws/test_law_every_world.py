"""From traces to the optimum, in every world that comes with the package.

What a plan must reach is computed on the true hidden state, which neither the
traces nor the plan know anything of.
"""

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from built_in_worlds import EPISODES, LEFT_TO_CHANCE, enough_traces

GAMMA = 0.95


def test_all_built_in_worlds_are_tested():
    ids = {f"resolvent/{name}-v0" for name in {*EPISODES, *LEFT_TO_CHANCE}}
    assert ids == {name for name in gym.registry if name.startswith("resolvent/")}


@pytest.mark.parametrize("name", EPISODES)
def test_plans_from_traces_are_optimal_from_every_initial_state(name):
    env = gym.make(f"resolvent/{name}-v0")
    world = env.unwrapped
    traces = enough_traces(env, name)
    plan = rs.plan(rs.infer(traces, timing=world.timing), traces, gamma=GAMMA)

    best = world.mechanics.optimal_values(GAMMA)
    for start in np.unique(world.mechanics.starts).tolist():
        options = {"start": int(world.mechanics.observation_of[start])}
        runs = plan.run(env, episodes=1, options=options, max_steps=1_000)
        assert runs.discounted_returns[0] == pytest.approx(best[start], rel=1e-12, abs=0)
