"""Machines inferred while learners train: weights and stored steps are transferred."""

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs

pytest.importorskip("stable_baselines3")

import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from resolvent.rl.sb3 import InferMachines, OnlineMachineWrapper
from resolvent.rl.sb3.online_machines import assign_slots, transfer_weights

ROOMS, MOST = 4, 3


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def house():
    return gym.make("resolvent/House-v0", max_episode_steps=30)


def growing(count):
    return OnlineMachineWrapper(make_vec_env(house, n_envs=count, seed=0), most_states=MOST)


SMALL = {"policy_kwargs": {"net_arch": [8, ROOMS + 3 * MOST]}, "device": "cpu", "seed": 0}


def outputs(model, row):
    """Return all outputs of a learner's networks for an observation."""
    with torch.no_grad():
        shown = torch.tensor(np.array([row]), dtype=torch.float32)
        if isinstance(model, DQN):
            said = model.q_net(shown), model.q_net_target(shown)
        else:
            acting = model.policy.get_distribution(shown).distribution.logits
            said = model.policy.predict_values(shown), acting
        return np.concatenate([one.numpy().ravel() for one in said])


@pytest.mark.parametrize("learner", [PPO, DQN])
def test_a_split_state_starts_with_the_same_values(learner):
    envs = growing(1)
    model = learner("MlpPolicy", envs, **SMALL)
    old = np.array([1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0])  # the second slot of the first machine
    new = np.array([1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0, 0])  # the third
    before = outputs(model, old)
    assert not np.allclose(outputs(model, new), before)
    transfer_weights(
        model.policy,
        envs,
        {"transition": assign_slots(np.array([[9, 0, 0], [0, 5, 4], [0, 0, 0]]))},
    )
    assert np.allclose(outputs(model, old), before)
    assert np.allclose(outputs(model, new), before)


def held(buffer, envs):
    """Check the states of all steps in a buffer by the rooms visited; return their number."""
    transition, reward = (envs.shown.slots[one].tolist() for one in ("transition", "reward"))
    rooms = house().unwrapped.mechanics.observations
    key, toilet = rooms.index("orangeroom"), rooms.index("cyanroom")
    size = buffer.buffer_size if buffer.full else buffer.pos
    rows = [(buffer.pos - size + at) % buffer.buffer_size for at in range(size)]
    checked = 0
    for env in range(buffer.n_envs):
        began = not buffer.full  # a full one begins within an episode
        has_key = has_been = False
        for row in rows:
            here, led = buffer.observations[row, env], buffer.next_observations[row, env]
            if began:
                for shown in (here, led):
                    room = int(shown[:ROOMS].argmax())
                    has_key = has_key or room == key
                    has_been = has_been or (has_key and room == toilet)
                    assert shown[ROOMS:][:MOST].argmax() == transition[has_key]
                    assert shown[ROOMS:][MOST : 2 * MOST].argmax() == reward[has_been]
                    checked += 1
            if buffer.dones[row, env]:
                began, has_key, has_been = True, False, False
    return checked


@pytest.mark.parametrize("buffer_size", [10_000, 300])
def test_steps_in_a_replay_buffer_are_relabeled(buffer_size):
    envs = growing(2)
    model = DQN(
        "MlpPolicy", envs, buffer_size=buffer_size, learning_starts=5_000, gradient_steps=1, **SMALL
    )
    callback = InferMachines(every=300)
    model.learn(1_200, callback=callback)
    assert callback.changes
    assert (envs.machines.transition.states, envs.machines.reward.states) == (2, 2)
    assert held(model.replay_buffer, envs) > min(buffer_size, 1_200)


def test_a_buffer_with_shared_rows_is_emptied():
    envs = growing(2)
    model = DQN(
        "MlpPolicy",
        envs,
        buffer_size=10_000,
        learning_starts=100,
        optimize_memory_usage=True,
        replay_buffer_kwargs={"handle_timeout_termination": False},
        **SMALL,
    )
    callback = InferMachines(every=300)
    model.learn(600, callback=callback)
    assert callback.changes
    steps = (600 - callback.changes[-1]) // 2
    assert steps <= model.replay_buffer.pos <= steps + 4


@pytest.mark.parametrize("normalized", [False, True])
def test_the_last_observation_is_renewed(normalized):
    """The next action is chosen by the states of the new machines."""
    envs = growing(2)
    outer = VecNormalize(envs, norm_reward=False) if normalized else envs
    model = PPO("MlpPolicy", outer, n_steps=64, batch_size=64, n_epochs=1, **SMALL)
    looks = []

    class Looking(InferMachines):
        def _show(self, changed):
            super()._show(changed)
            current = envs.current()
            expected = outer.normalize_obs(current) if normalized else current
            looks.append(np.array_equal(self.model._last_obs, expected))

    model.learn(1_000, callback=Looking(every=200))
    assert looks
    assert all(looks)


def test_until_stops_updates():
    envs = growing(2)
    model = PPO("MlpPolicy", envs, n_steps=64, batch_size=64, n_epochs=1, **SMALL)
    callback = InferMachines(every=128, until=256)
    model.learn(1_000, callback=callback)
    assert sum(map(len, envs.traces)) < 50
    assert all(steps <= 256 for steps in callback.changes)


def test_continued_learning_keeps_the_schedule():
    envs = growing(2)
    model = PPO("MlpPolicy", envs, n_steps=64, batch_size=64, n_epochs=1, **SMALL)
    callback = InferMachines(every=300)
    for _ in range(3):
        model.learn(256, callback=callback, reset_num_timesteps=False)
    assert envs.machines is not None


def test_the_callback_needs_the_wrapper():
    model = PPO("MlpPolicy", make_vec_env(house, n_envs=1), n_steps=8, batch_size=8, **SMALL)
    with pytest.raises(
        rs.OptionError, match=r"give the learner OnlineMachineWrapper\(make_vec_env"
    ):
        model.learn(8, callback=InferMachines())
    with pytest.raises(rs.OptionError, match="every=0: use at least 1"):
        InferMachines(every=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_ppo_solves_the_house_with_inferred_machines(seed):
    """The learner observes the room and the inferred states: six steps are enough."""
    envs = OnlineMachineWrapper(make_vec_env(house, n_envs=8, seed=seed), most_states=4)
    model = PPO(
        "MlpPolicy",
        envs,
        n_steps=64,
        batch_size=128,
        n_epochs=8,
        gamma=0.95,
        learning_rate=3e-3,
        ent_coef=0.02,
        policy_kwargs={"net_arch": [32]},
        seed=seed,
        device="cpu",
    )
    model.learn(10_240, callback=InferMachines(every=1_000))
    look = envs.around(make_vec_env(house, n_envs=1))
    shown, paid, steps, done = look.reset(), 0.0, 0, [False]
    while not done[0]:
        action, _ = model.predict(shown, deterministic=True)
        shown, reward, done, _ = look.step(action)
        paid, steps = paid + float(reward[0]), steps + 1
    assert paid == 1
    assert 6 <= steps <= 8
