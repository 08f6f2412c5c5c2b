"""Counterfactual steps in DQN's buffer are those that happen in the environment."""

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from resolvent.planning.model import Model

pytest.importorskip("stable_baselines3")

from stable_baselines3.common.vec_env import DummyVecEnv

from resolvent.rl.sb3 import CounterfactualReplayBuffer

MODES = ["flatten", "multidiscrete", "discrete"]


def house():
    return gym.make("resolvent/House-v0", max_episode_steps=40)


@pytest.fixture(scope="module")
def plan():
    traces = rs.collect(house(), episodes=200, seed=0)
    return rs.plan(rs.infer(traces), traces)


def happens(env):
    """Return every step of the wrapped house, by playing all paths to new states."""
    found, paths, met = {}, [()], set()
    while paths:
        path = paths.pop(0)
        shown, _ = env.reset()
        for action in path:
            shown, *_ = env.step(action)
        here = np.array(shown).tobytes()
        if here in met:
            continue
        met.add(here)
        for action in range(5):
            env.reset()
            for one in path:
                env.step(one)
            following, reward, ended, _, _ = env.step(action)
            led = None if ended else np.array(following).tobytes()
            found[here, action] = led, reward, ended
            if not ended:
                paths.append((*path, action))
    return found


def stored(buffer):
    """All steps in a buffer, as `happens` writes them."""
    for row in range(buffer.pos):
        for env in range(buffer.n_envs):
            here = buffer.observations[row, env].squeeze().tobytes()
            ended = bool(buffer.dones[row, env])
            led = None if ended else buffer.next_observations[row, env].squeeze().tobytes()
            action = int(buffer.actions[row, env, 0])
            yield (here, action), (led, float(buffer.rewards[row, env]), ended)


def buffer_of(env, plan, **options):
    spaces = env.observation_space, env.action_space
    return CounterfactualReplayBuffer(5_000, *spaces, env=env, plan=plan, device="cpu", **options)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count", [1, 3])
def test_counterfactual_steps_are_true(plan, mode, count):
    env = rs.AugmentObservation(house(), plan.machines, mode=mode)
    truth = happens(env)
    buffer = buffer_of(env, plan, n_envs=count)
    envs = DummyVecEnv([lambda: rs.AugmentObservation(house(), plan.machines, mode=mode)] * count)
    seen, draw = envs.reset(), np.random.default_rng(0)
    real = 0
    for _ in range(200):
        actions = draw.integers(0, 5, count)
        following, rewards, dones, infos = envs.step(actions)
        last = following.copy()
        for number in np.flatnonzero(dones):
            last[number] = infos[number]["terminal_observation"]
        ended = [d and not i["TimeLimit.truncated"] for d, i in zip(dones, infos, strict=True)]
        buffer.add(seen, last, actions, rewards, np.array(ended), infos)
        real += count
        seen = following
    steps = dict(stored(buffer))
    assert steps.items() <= truth.items()
    assert len(steps) == len(truth)  # all steps, though few were taken
    assert buffer.pos * count == real + buffer.counterfactual_steps
    assert buffer.counterfactual_steps > real / 2


def test_a_step_adds_one_counterfactual_step_for_each_other_state(plan):
    """The corridor occurs without the key, with it, and after the toilet."""
    env = rs.AugmentObservation(house(), plan.machines, mode="flatten")
    buffer = buffer_of(env, plan)
    shown, _ = env.reset()
    following, reward, *_ = env.step(0)  # up: a wall without the key
    buffer.add(
        shown[None], following[None], np.array([0]), np.array([reward]), np.array([False]), [{}]
    )
    assert buffer.pos == 3
    assert buffer.counterfactual_steps == 2
    for number, (transition, paid) in enumerate([(1, 0), (1, 1)], 1):
        assert buffer.observations[number, 0].tolist() == env.encode(0, transition, paid).tolist()
        rooms = house().unwrapped.mechanics.observations
        led = env.encode(rooms.index("cyanroom"), 1, 1)
        assert buffer.next_observations[number, 0].tolist() == led.tolist()


@pytest.mark.parametrize("gamma", [None, 0.8])
def test_counterfactual_rewards_are_shaped_as_real_ones(plan, gamma):
    """Counterfactual rewards once were unshaped inside `ShapeReward`: DQN then learned nothing."""

    def shaped():
        env = rs.AugmentObservation(house(), plan.machines, mode="flatten")
        return rs.wrappers.ShapeReward(env, plan, gamma=gamma)

    env = shaped()
    truth, buffer = happens(env), buffer_of(env, plan)
    seen, _ = env.reset()
    for action in np.random.default_rng(0).integers(0, 5, 200).tolist():
        following, reward, ended, cut, info = env.step(action)
        rows = seen[None], following[None], np.array([action])
        buffer.add(*rows, np.array([reward]), np.array([ended]), [info])
        seen = env.reset()[0] if ended or cut else following
    assert buffer.counterfactual_steps > 100
    for step, (led, paid, ended) in stored(buffer):
        assert (led, ended) == (truth[step][0], truth[step][2])
        assert paid == pytest.approx(truth[step][1], abs=1e-6)
    assert len(np.unique(buffer.rewards[: buffer.pos])) > 5
    row = seen[None], seen[None], np.array([0]), np.array([0.0]), np.array([False])
    with pytest.raises(rs.OptionError, match="inside ShapeReward, but not both"):
        buffer.add(*row, [{}])
    with pytest.raises(rs.OptionError, match="inside ShapeReward, but not both"):
        buffer_of(env.env, plan).add(*row, [{"unshaped_reward": 0.0}])
    with pytest.raises(rs.OptionError, match=r"leave it out, and give shaping=plan"):
        rs.q_learning(env, episodes=1, model=plan.model, counterfactual=True)


def test_unknown_steps_are_omitted(plan):
    few = rs.collect(house(), episodes=2, seed=0)
    model = Model.of(plan.machines, few)
    assert model.unknown_steps > 0
    env = rs.AugmentObservation(house(), plan.machines, mode="flatten")
    truth, buffer = happens(env), buffer_of(env, model)
    seen, _ = env.reset()
    for action in np.random.default_rng(0).integers(0, 5, 39).tolist():
        following, reward, ended, _, _ = env.step(action)
        rows = seen[None], following[None], np.array([action])
        buffer.add(*rows, np.array([reward]), np.array([ended]), [{}])
        seen = following
        if ended:
            seen, _ = env.reset()
    assert dict(stored(buffer)).items() <= truth.items()


def test_invalid_arguments_are_refused(plan):
    flat = rs.AugmentObservation(house(), plan.machines, mode="flatten")
    spaces = flat.observation_space, flat.action_space
    shown = rs.AugmentObservation(house(), plan.machines)
    for options, match in (
        ({}, "env is missing: give replay_buffer_kwargs="),
        ({"env": house(), "plan": plan}, "does not show the machines"),
        ({"env": flat}, "plan is a NoneType: give what rs.plan returned"),
        ({"env": shown, "plan": plan}, "the learner's observations are Box.*, those of env Dict"),
        ({"env": flat, "plan": plan, "optimize_memory_usage": True}, "leave it out"),
    ):
        with pytest.raises(rs.OptionError, match=match):
            CounterfactualReplayBuffer(10, *spaces, **options)
    with pytest.raises(rs.OptionError, match='use AugmentObservation\\(mode="flatten"\\)'):
        CounterfactualReplayBuffer(
            10, shown.observation_space, shown.action_space, env=shown, plan=plan
        )
