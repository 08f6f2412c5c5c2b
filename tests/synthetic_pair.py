"""A pair of random machines of any size, and random traces that they explain."""

import numpy as np

import resolvent as rs
from resolvent.machines import Vocabularies, machine_of_tables
from resolvent.traces.vocabulary import Vocabulary

LABELS, OBSERVATIONS, ACTIONS = 4, 20, 2


def synthetic(states, traces, length, seed=0):
    """Both machines read the same labels; the reward tells the two halves of the states apart."""
    chance = np.random.default_rng(seed)
    labels = Vocabulary([frozenset({f"event {number}"}) for number in range(LABELS)])
    observations = Vocabulary([f"place {number:02}" for number in range(OBSERVATIONS)])
    actions = Vocabulary(["left", "right"])
    rewards = Vocabulary([0.0, 1.0])
    queries = OBSERVATIONS * ACTIONS
    leads = chance.integers(0, states, (states, LABELS), dtype=np.int32)
    leads[:, 0] = (np.arange(states) + 1) % states  # so that every state is reached
    following = chance.integers(0, OBSERVATIONS, (states, queries), dtype=np.int32)
    paid = chance.integers(0, 2, (states, queries), dtype=np.int32)
    place = np.repeat(np.arange(states), queries), np.tile(np.arange(queries), states)
    transition, _ = machine_of_tables(
        rs.TransitionMachine,
        Vocabularies(labels, observations, actions, observations),
        leads,
        (*place, following.ravel()),
    )
    reward, _ = machine_of_tables(
        rs.RewardMachine,
        Vocabularies(labels, observations, actions, rewards),
        leads,
        (*place, paid.ravel()),
    )
    seen = np.empty((traces, length + 1), np.int32)
    done = chance.integers(0, ACTIONS, (traces, length), dtype=np.int32)
    read = chance.integers(0, LABELS, (traces, length + 1), dtype=np.int32)
    gained = np.empty((traces, length), np.int32)
    seen[:, 0] = chance.integers(0, OBSERVATIONS, traces)
    state = np.zeros(traces, np.int32)
    for step in range(length):
        if step:
            state = leads[state, read[:, step]]
        query = seen[:, step] * ACTIONS + done[:, step]
        seen[:, step + 1] = following[state, query]
        gained[:, step] = paid[state, query]
    return rs.MachinePair(transition, reward), rs.TraceSet.from_columns(
        (observations, seen.ravel()),
        (labels, read.ravel()),
        (actions, done.ravel()),
        (rewards, gained.ravel()),
        offsets=np.arange(traces + 1) * length,
        terminated=np.zeros(traces, bool),
        truncated=np.ones(traces, bool),
    )
