"""Plans, models, Q-tables, trackers and wrappers are copied, sent and compared."""

import copy
import dataclasses
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import gymnasium as gym
import numpy as np
import pytest
from spawned_control import acted

import resolvent as rs
from noisy_worlds import noisy_house
from resolvent.rl.tracker import StateTracker
from resolvent.worlds import House


def pickled(thing):
    return pickle.loads(pickle.dumps(thing))  # noqa: S301 -- our own bytes


WAYS = pytest.mark.parametrize("again", [pickled, copy.deepcopy])


@pytest.fixture(scope="module")
def traces():
    return rs.collect(House(), episodes=200, seed=0)


@pytest.fixture(scope="module")
def plan(traces):
    return rs.plan(rs.infer(traces), traces)


@pytest.fixture(scope="module")
def learned(plan):
    return rs.q_learning(rs.AugmentObservation(House(), plan.machines), episodes=50)


@WAYS
def test_plans_are_compared_by_content(plan, again):
    other = again(plan)
    assert other == plan
    assert other.model == plan.model
    assert hash(other) == hash(plan)
    assert str(other) == str(plan)
    assert other != dataclasses.replace(plan, gamma=0.9)
    assert other != "a plan"
    reward = plan.model.reward.copy()
    reward[0, 0] += 1
    assert plan.model != dataclasses.replace(plan.model, reward=reward)
    states = {**plan.model.states, "reward": plan.model.states["transition"]}
    assert plan.model != dataclasses.replace(plan.model, states=states)


@WAYS
def test_stochastic_plans_are_compared_by_content(again):
    machines, traces = noisy_house()
    plan = rs.plan(machines, traces)
    other = again(plan)
    assert other == plan
    assert hash(other) == hash(plan)
    assert str(other) == str(plan)
    outcomes = plan.model.outcomes
    fewer = dataclasses.replace(outcomes, count=outcomes.count - 1)
    assert plan.model != dataclasses.replace(plan.model, outcomes=fewer)
    assert plan != dataclasses.replace(plan, confidence=0.9)


def test_unknown_rewards_are_equal(traces):
    few = traces[:2]
    plan = rs.plan(rs.infer(few), few)
    assert np.isnan(plan.model.reward).any()
    assert plan == rs.plan(rs.infer(few), few)
    assert plan != rs.plan(rs.infer(traces), traces)


@WAYS
def test_q_tables_are_compared_by_content(learned, plan, again):
    other = again(learned)
    assert other == learned
    assert other.curve == learned.curve
    assert hash(other.curve) == hash(learned.curve)
    values = learned.q.copy()
    values[0, 0] += 1
    assert other != dataclasses.replace(learned, q=values)
    assert plan.run(House(), episodes=3, seed=0) == again(plan).run(House(), episodes=3, seed=0)


@WAYS
def test_a_copied_tracker_continues(plan, again):
    memory = StateTracker(plan.machines)
    memory.reset(None)
    memory.step({"key"})
    other = again(memory)
    assert other.states == {"transition": 1, "reward": 0}
    other.step({"toilet"})
    assert (other.states, memory.states) == (
        {"transition": 1, "reward": 1},
        {"transition": 1, "reward": 0},
    )


@WAYS
@pytest.mark.parametrize("knowledge", [False, True])
def test_a_copied_wrapper_continues(plan, again, knowledge):
    env = rs.AugmentObservation(House(), plan.machines, knowledge=knowledge)
    env.reset()
    env.step(2)  # left, to where the key is
    other = again(env)
    assert other.observation_space == env.observation_space
    assert other.step(3) == env.step(3)
    assert other.augmented_state == env.augmented_state == (0, 1, 0)


@WAYS
def test_a_copied_vector_wrapper_continues(plan, again):
    envs = rs.wrappers.VectorAugmentObservation(
        gym.vector.SyncVectorEnv([House] * 2), plan.machines
    )
    envs.reset(seed=0)
    envs.step(np.array([2, 0]))
    other = again(envs)
    assert other.step(np.array([3, 2]))[0]["transition_state"].tolist() == [1, 1]
    assert envs.step(np.array([3, 0]))[0]["transition_state"].tolist() == [1, 0]


def test_values_can_be_sent_to_a_spawned_process(plan, learned):
    memory = StateTracker(plan.machines)
    memory.reset(None)
    env = rs.AugmentObservation(House(), plan.machines)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        back, planned, tried, states = pool.submit(acted, plan, learned, memory, env).result()
    assert back == plan
    assert planned == "left"
    assert tried == learned.action(env.reset()[0])
    assert states == {"transition": 1, "reward": 0}
    assert memory.states == {"transition": 0, "reward": 0}
