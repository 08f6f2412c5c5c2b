"""Stable-Baselines3 on the house: with the machines' states it is solved, without it cannot be."""

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs

pytest.importorskip("stable_baselines3")

import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env

MODES = ["dict", "flatten", "multidiscrete", "discrete"]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def house():
    return gym.make("resolvent/House-v0", max_episode_steps=50)


@pytest.fixture(scope="module")
def pair():
    return rs.infer(rs.collect(house(), episodes=500, seed=0)).machines


def learned(made):
    """PPO of a size that solved the wrapped house from each of 12 seeds in 6,144 steps."""
    model = PPO(
        "MlpPolicy",
        make_vec_env(made, n_envs=8, seed=0),
        n_steps=64,
        batch_size=128,
        n_epochs=8,
        gamma=0.95,
        learning_rate=3e-3,
        ent_coef=0.02,
        policy_kwargs={"net_arch": [32]},
        seed=0,
        device="cpu",
    )
    return model.learn(10_240)


def played(model, env):
    """What a greedy episode pays, and how many steps it takes."""
    observation, _ = env.reset()
    paid, steps, ended = 0.0, 0, False
    while not ended:
        action, _ = model.predict(observation, deterministic=True)
        observation, reward, terminated, truncated, _ = env.step(int(action))
        paid, steps, ended = paid + reward, steps + 1, terminated or truncated
    return paid, steps


def test_with_memory_the_house_is_solved(pair):
    def made():
        return rs.AugmentObservation(house(), pair, mode="multidiscrete")

    paid, steps = played(learned(made), made())
    assert paid == 1
    assert 6 <= steps <= 8  # key, corridor, toilet, corridor, sofa, sit


def test_without_memory_it_is_not():
    """In the corridor a greedy agent always goes the same way, and needs three."""
    paid, _ = played(learned(house), house())
    assert paid == 0


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_is_one_that_it_takes(pair, mode):
    env = rs.AugmentObservation(house(), pair, mode=mode)
    check_env(env)
    policy = "MultiInputPolicy" if mode == "dict" else "MlpPolicy"
    small = {"policy_kwargs": {"net_arch": [4]}, "device": "cpu", "seed": 0}
    ppo = PPO(policy, env, n_steps=32, batch_size=32, n_epochs=1, **small).learn(32)
    dqn = DQN(policy, env, learning_starts=8, buffer_size=64, batch_size=8, **small).learn(32)
    observation, _ = env.reset()
    for model in (ppo, dqn):
        action, _ = model.predict(observation)
        assert np.int64(action) in env.action_space
