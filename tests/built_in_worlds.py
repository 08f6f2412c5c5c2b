"""The worlds that come with the package, each with traces enough to find its machines."""

import random

import numpy as np

import resolvent as rs

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

LEFT_TO_CHANCE = {"Symbol"}
"""Worlds that hide what they draw at the start: nobody can reach the optimum of the true state."""


def past_the_plants(world, seed):
    """Random actions, but for those into a plant: they would end nearly every episode."""
    tables, draw = world.mechanics, random.Random(seed)
    plant = np.array(["plant" in label for label in tables.labels])[tables.label_of]
    safe = {}
    for state in range(tables.live):
        fine = np.flatnonzero(~plant[tables.next_state[state]])
        safe[int(tables.observation_of[state])] = fine.tolist()
    return lambda seen: draw.choice(safe[seen])


def enough_traces(env, name):
    """Traces of a world that comes with the package, enough to find its machines."""
    policy = past_the_plants(env.unwrapped, 0) if name.startswith("Office") else None
    return rs.collect(env, episodes=EPISODES[name], seed=0, policy=policy)
