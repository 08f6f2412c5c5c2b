"""From traces to the optimum, in every world that comes with the package.

What a plan must reach is computed on the true hidden state, which neither the
traces nor the plan know anything of.
"""

import random

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs

GAMMA = 0.95

EPISODES = {
    "House": 300,
    "HouseInterference": 300,
    "PhaseGrid3": 500,
    "PhaseGrid4": 1_000,
    "PhaseGrid5": 3_000,
    "RandomWorld": 3_000,
    "OfficeCoffee": 150,
    "OfficeMail": 150,
    "OfficeBoth": 150,
    "OfficePatrol": 150,
    "Cookie": 100,
    "TwoKeys": 300,
    "TMaze": 300,
}


def past_the_plants(world, seed):
    """Random actions, but for those into a plant: they would end nearly every episode."""
    tables, draw = world.mechanics, random.Random(seed)
    plant = np.array(["plant" in label for label in tables.labels])[tables.label_of]
    safe = {}
    for state in range(tables.live):
        fine = np.flatnonzero(~plant[tables.following[state]])
        safe[int(tables.observation_of[state])] = fine.tolist()
    return lambda seen: draw.choice(safe[seen])


def traces_of(env, name):
    policy = past_the_plants(env.unwrapped, 0) if name.startswith("Office") else None
    return rs.collect(env, episodes=EPISODES[name], seed=0, policy=policy)


def test_no_world_is_left_out():
    ids = {f"resolvent/{name}-v0" for name in EPISODES}
    assert ids == {name for name in gym.registry if name.startswith("resolvent/")}


@pytest.mark.parametrize("name", EPISODES)
def test_a_plan_from_traces_gets_the_optimum_from_every_start(name):
    env = gym.make(f"resolvent/{name}-v0")
    world = env.unwrapped
    traces = traces_of(env, name)
    plan = rs.plan(rs.infer(traces, timing=world.timing), traces, gamma=GAMMA)

    best = world.mechanics.optimal_values(GAMMA)
    for start in np.unique(world.mechanics.starts).tolist():
        options = {"start": int(world.mechanics.observation_of[start])}
        runs = plan.run(env, episodes=1, options=options, max_steps=1_000)
        assert runs.discounted_returns[0] == pytest.approx(best[start], rel=1e-12, abs=0)
