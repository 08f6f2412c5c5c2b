"""Memory that grows in a fixed space: it shows the states of its machines, wherever envs live."""

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from resolvent.rl.tracker import StateTracker

pytest.importorskip("stable_baselines3")

from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

from resolvent.rl.sb3 import OnlineMachineWrapper

ROOMS = 4


def house():
    return gym.make("resolvent/House-v0", max_episode_steps=30)


def played(envs, steps, seed=0):
    """Act at random; give what is shown, what was done, and what came of it."""
    draw = np.random.default_rng(seed)
    shown = envs.reset()
    for _ in range(steps):
        actions = draw.integers(0, 5, envs.num_envs)
        following, rewards, dones, infos = envs.step(actions)
        yield shown, actions, following, rewards, dones, infos
        shown = following


def places(row, most, kinds=3):
    """The place that is shown for each machine."""
    shown = row[-kinds * most :].reshape(kinds, most)
    assert (shown.sum(axis=1) == 1).all()
    return shown.argmax(axis=1).tolist()


def test_before_machines_are_inferred_all_is_one_state():
    envs = OnlineMachineWrapper(DummyVecEnv([house] * 2), most_states=3)
    assert envs.observation_space.shape == (ROOMS + 9,)
    assert envs.infer() is None  # nothing has ended yet
    for shown, *_ in played(envs, 20):
        assert all(row in envs.observation_space for row in shown)
        assert [places(row, 3) for row in shown] == [[0, 0, 0]] * 2


@pytest.mark.parametrize(
    "kind", [DummyVecEnv, lambda made: SubprocVecEnv(made, start_method="fork")]
)
def test_it_shows_the_states_of_its_machines(kind):
    envs = OnlineMachineWrapper(kind([house] * 2), most_states=4)
    for _ in played(envs, 400):
        pass
    assert envs.infer() is not None
    assert (envs.machines.transition.states, envs.machines.reward.states) == (2, 2)
    assert envs.machines.transition.observations[0] in ("corridor", "orangeroom", "cyanroom")
    of_state = [envs.shown.positions[one].tolist() for one in ("transition", "reward")]
    memories = [StateTracker(envs.machines) for _ in range(2)]
    for memory in memories:
        memory.reset(None)
    ends = 0
    for shown, _, following, _, dones, infos in played(envs, 100, seed=1):
        for number, memory in enumerate(memories):
            expected = [of_state[0][memory.transition_state], of_state[1][memory.reward_state], 0]
            assert places(shown[number], 4) == expected
            memory.step(infos[number]["labels"])
            last = infos[number]["terminal_observation"] if dones[number] else following[number]
            expected = [of_state[0][memory.transition_state], of_state[1][memory.reward_state], 0]
            assert places(last, 4) == expected
            if dones[number]:
                memory.reset(None)
                ends += 1
    assert ends > 2
    envs.close()


def test_its_traces_are_those_that_collect_would_have_recorded():
    envs = OnlineMachineWrapper(DummyVecEnv([house]), most_states=4)
    actions = [int(done[0]) for _, done, *_ in played(envs, 300)]
    envs.infer()
    (recorded,) = envs.traces
    env, left = house(), iter(actions)
    collected = rs.collect(env, episodes=len(recorded), policy=lambda room: next(left))
    assert list(recorded) == list(collected)
    assert len(recorded) > 8


def test_machines_are_updated_and_states_keep_their_places():
    envs = OnlineMachineWrapper(DummyVecEnv([house] * 4), most_states=5)
    changes = 0
    for number, _ in enumerate(played(envs, 600)):
        if number % 40 == 39:
            changed = envs.infer()
            changes += changed is not None
            for found in (changed or {}).values():
                assert len(set(found.of_state.tolist())) == len(found.of_state)
    envs.infer()
    together = rs.infer(rs.TraceSet([trace for some in envs.traces for trace in some]))
    assert changes >= 1
    assert envs.machines.transition == together.machines.transition
    assert envs.result.refinement.all_traces == sum(map(len, envs.traces))


def test_episodes_that_go_on_are_shown_as_new_machines_see_them():
    """Inferred in the midst of an episode after the key was found: at once that is shown."""
    envs = OnlineMachineWrapper(DummyVecEnv([house]), most_states=3)
    for _ in played(envs, 600):
        pass
    shown = envs.reset()
    for action in (2, 3):  # to the key, and back
        shown, *_ = envs.step(np.array([action]))
    assert places(shown[0], 3)[:2] == [0, 0]
    envs.infer()
    (row,) = envs.current()
    transition, reward, _ = places(row, 3)
    assert transition == envs.shown.positions["transition"][1]
    assert reward == envs.shown.positions["reward"][0]
    assert row[:ROOMS].tolist() == shown[0][:ROOMS].tolist()


def test_another_one_follows_but_teaches_nothing():
    envs = OnlineMachineWrapper(DummyVecEnv([house] * 2), most_states=3)
    look = envs.around(DummyVecEnv([house]))
    for _ in played(envs, 400):
        pass
    for _ in played(look, 100):
        pass
    envs.infer()
    assert look.infer() is None
    look.reset()
    shown, *_ = look.step(np.array([2]))  # to the key
    assert look.machines is envs.machines
    assert places(shown[0], 3)[0] == envs.shown.positions["transition"][1]


def test_labels_may_be_made_of_what_is_seen():
    def unlabelled():
        return gym.wrappers.TransformObservation(house(), lambda seen: seen, None)

    envs = OnlineMachineWrapper(DummyVecEnv([unlabelled] * 2), most_states=4, labels="observation")
    for _ in played(envs, 400):
        pass
    envs.infer()
    assert envs.machines.transition.states == 2
    envs.reset()
    shown, *_ = envs.step(np.array([2, 0]))  # to the key; a wall
    one, other = (places(row, 4)[0] for row in shown)
    assert [one, other] == envs.shown.positions["transition"][[1, 0]].tolist()


def test_where_there_are_more_states_than_places_the_last_is_shared():
    def symbol():
        return gym.make("resolvent/Symbol-v0", max_episode_steps=60)

    envs = OnlineMachineWrapper(DummyVecEnv([symbol]), most_states=3)
    machines = symbol().unwrapped.machines()
    envs.shown.change(machines, [rs.collect(symbol(), episodes=100, seed=0)])
    assert machines.transition.states == 10
    found = envs.shown.positions["transition"].tolist()
    assert sorted(found) == [0, 1, *[2] * 8]


def test_what_does_not_fit_is_refused():
    with pytest.raises(rs.OptionError, match="venv is a TimeLimit: give a vector env"):
        OnlineMachineWrapper(house())
    with pytest.raises(rs.OptionError, match="most_states=0: use at least 1"):
        OnlineMachineWrapper(DummyVecEnv([house]), most_states=0)
    with pytest.raises(rs.OptionError, match="outputs come as a list"):
        OnlineMachineWrapper(DummyVecEnv([house]), outputs="reward")
