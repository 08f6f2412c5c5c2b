"""Stable-Baselines3 solves the house with the machines' states, and cannot without.

And on environments of every kind of space: it learns from each in some mode, or a line says
what to do.
"""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import resolvent as rs
from every_space import FIXED, FREE, NAMES, Shows, machines_of_shows

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
    """Return the return and the length of a greedy episode."""
    observation, _ = env.reset()
    paid, steps, ended = 0.0, 0, False
    while not ended:
        action, _ = model.predict(observation, deterministic=True)
        observation, reward, terminated, truncated, _ = env.step(int(action))
        paid, steps, ended = paid + reward, steps + 1, terminated or truncated
    return paid, steps


def test_ppo_with_machine_states_solves_the_house(pair):
    def made():
        return rs.AugmentObservation(house(), pair, mode="multidiscrete")

    paid, steps = played(learned(made), made())
    assert paid == 1
    assert 6 <= steps <= 8  # key, corridor, toilet, corridor, sofa, sit


def test_ppo_without_memory_does_not():
    """In the corridor a greedy policy takes one action, and three are needed."""
    paid, _ = played(learned(house), house())
    assert paid == 0


def learns(env, mode, steps):
    """Let PPO and DQN take some steps, and act."""
    policy = "MultiInputPolicy" if mode == "dict" else "MlpPolicy"
    small = {"policy_kwargs": {"net_arch": [4]}, "device": "cpu", "seed": 0}
    ppo = PPO(policy, env, n_steps=steps, batch_size=steps, n_epochs=1, **small).learn(steps)
    few = {"learning_starts": steps // 4, "batch_size": steps // 4, "buffer_size": 2 * steps}
    dqn = DQN(policy, env, **few, **small).learn(steps)
    observation, _ = env.reset()
    for model in (ppo, dqn):
        action, _ = model.predict(observation)
        assert np.int64(action) in env.action_space


@pytest.mark.parametrize("mode", MODES)
def test_learners_accept_every_mode(pair, mode):
    env = rs.AugmentObservation(house(), pair, mode=mode)
    check_env(env)
    learns(env, mode, 32)


def shows(name, mode):
    space = NAMES[name]
    space.seed(0)
    values = [space.sample() for _ in range(4)]
    return rs.AugmentObservation(Shows(space, values), machines_of_shows(), mode=mode)


# The table of docs/how-to/stable-baselines.md: all other modes raise with a remedy.
ROWS = [name for name in FIXED if name.startswith("Discrete") or name == "MultiDiscrete"]
TAKEN = {
    "dict": FIXED,
    "flatten": FIXED,
    "multidiscrete": [*ROWS, "MultiDiscrete from 1 and 2"],
    "discrete": [name for name in ROWS if name.startswith("Discrete")],
}


@pytest.mark.parametrize(("mode", "name"), [(mode, name) for mode in MODES for name in TAKEN[mode]])
def test_learners_accept_every_space(mode, name):
    learns(shows(name, mode), mode, 8)


@pytest.mark.parametrize(
    ("mode", "name"),
    [(mode, name) for mode in MODES for name in NAMES if name not in TAKEN[mode]],
)
def test_other_spaces_raise_with_a_remedy(mode, name):
    if mode == "dict":
        with pytest.warns(rs.errors.SpaceWarning, match="encode it with gymnasium"):
            shows(name, mode)
        return
    advice = "encode it with gymnasium" if name in FREE else 'use mode="(dict|multidiscrete)"'
    with pytest.raises(rs.OptionError, match=advice) as caught:
        shows(name, mode)
    assert "\n" not in str(caught.value)


def test_the_remedy_for_spaces_without_fixed_size():
    """The advice of the error works."""
    space = NAMES["Dict with a Sequence"]
    space.seed(0)
    env = Shows(space, [space.sample() for _ in range(4)])
    left = gym.wrappers.FilterObservation(env, ["direction"])
    learns(rs.AugmentObservation(left, machines_of_shows()), "dict", 8)

    def counted(seen):
        return np.bincount(np.array(seen["items"], int), minlength=3).astype(np.float32)

    amounts = spaces.Box(0, np.inf, (3,))
    encoded = gym.wrappers.TransformObservation(env, counted, amounts)
    learns(rs.AugmentObservation(encoded, machines_of_shows()), "dict", 8)
