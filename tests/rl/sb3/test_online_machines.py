"""States of growing machines in a fixed space, for environments here and in other processes."""

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import resolvent as rs
from resolvent.rl.tracker import StateTracker

pytest.importorskip("stable_baselines3")

from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

from resolvent.rl.sb3 import OnlineMachineWrapper
from resolvent.rl.sb3.online_machines import assign_slots

ROOMS = 4


def house():
    return gym.make("resolvent/House-v0", max_episode_steps=30)


def played(envs, steps, seed=0):
    """Act at random; yield each observation, the actions, and the return of the step."""
    draw = np.random.default_rng(seed)
    shown = envs.reset()
    for _ in range(steps):
        actions = draw.integers(0, 5, envs.num_envs)
        following, rewards, dones, infos = envs.step(actions)
        yield shown, actions, following, rewards, dones, infos
        shown = following


def places(row, most, kinds=3):
    """Return the slot that is shown for each machine."""
    shown = row[-kinds * most :].reshape(kinds, most)
    assert (shown.sum(axis=1) == 1).all()
    return shown.argmax(axis=1).tolist()


def test_before_inference_the_first_slots_are_shown():
    envs = OnlineMachineWrapper(DummyVecEnv([house] * 2), most_states=3)
    assert envs.observation_space.shape == (ROOMS + 9,)
    assert envs.infer() is None  # nothing has ended yet
    for shown, *_ in played(envs, 20):
        assert all(row in envs.observation_space for row in shown)
        assert [places(row, 3) for row in shown] == [[0, 0, 0]] * 2


@pytest.mark.parametrize(
    "kind", [DummyVecEnv, lambda made: SubprocVecEnv(made, start_method="fork")]
)
def test_the_states_of_the_machines_are_shown(kind):
    envs = OnlineMachineWrapper(kind([house] * 2), most_states=4)
    for _ in played(envs, 400):
        pass
    assert envs.infer() is not None
    assert (envs.machines.transition.states, envs.machines.reward.states) == (2, 2)
    assert envs.machines.transition.observations[0] in ("corridor", "orangeroom", "cyanroom")
    of_state = [envs.shown.slots[one].tolist() for one in ("transition", "reward")]
    memories = [StateTracker(envs.machines) for _ in range(2)]
    for memory in memories:
        memory.reset(None)
    ends = 0
    for shown, _, following, _, dones, infos in played(envs, 100, seed=1):
        for number, memory in enumerate(memories):
            expected = [
                of_state[0][memory.states["transition"]],
                of_state[1][memory.states["reward"]],
                0,
            ]
            assert places(shown[number], 4) == expected
            memory.step(infos[number]["labels"])
            last = infos[number]["terminal_observation"] if dones[number] else following[number]
            expected = [
                of_state[0][memory.states["transition"]],
                of_state[1][memory.states["reward"]],
                0,
            ]
            assert places(last, 4) == expected
            if dones[number]:
                memory.reset(None)
                ends += 1
    assert ends > 2
    envs.close()


def test_traces_are_those_of_collect():
    envs = OnlineMachineWrapper(DummyVecEnv([house]), most_states=4)
    actions = [int(done[0]) for _, done, *_ in played(envs, 300)]
    envs.infer()
    (recorded,) = envs.traces
    env, left = house(), iter(actions)
    collected = rs.collect(env, episodes=len(recorded), policy=lambda room: next(left))
    assert list(recorded) == list(collected)
    assert len(recorded) > 8


def test_machines_are_updated_and_states_keep_their_slots():
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


def test_running_episodes_are_shown_by_new_machines():
    """Machines inferred during an episode show its states at once, such as the key."""
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
    assert transition == envs.shown.slots["transition"][1]
    assert reward == envs.shown.slots["reward"][0]
    assert row[:ROOMS].tolist() == shown[0][:ROOMS].tolist()


def test_a_wrapper_for_evaluation_follows_the_machines():
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
    assert places(shown[0], 3)[0] == envs.shown.slots["transition"][1]


def test_labels_may_be_derived_from_observations():
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
    assert [one, other] == envs.shown.slots["transition"][[1, 0]].tolist()


def test_surplus_states_share_the_last_slot():
    def symbol():
        return gym.make("resolvent/Symbol-v0", max_episode_steps=60)

    envs = OnlineMachineWrapper(DummyVecEnv([symbol]), most_states=3)
    machines = symbol().unwrapped.machines()
    envs.shown.change(machines, [rs.collect(symbol(), episodes=100, seed=0)])
    assert machines.transition.states == 10
    found = envs.shown.slots["transition"].tolist()
    assert sorted(found) == [0, 1, *[2] * 8]


def test_invalid_arguments_are_refused():
    with pytest.raises(rs.OptionError, match="venv is a TimeLimit: give a vector env"):
        OnlineMachineWrapper(house())
    with pytest.raises(rs.OptionError, match="most_states=0: use at least 1"):
        OnlineMachineWrapper(DummyVecEnv([house]), most_states=0)
    with pytest.raises(rs.OptionError, match="outputs must be a list"):
        OnlineMachineWrapper(DummyVecEnv([house]), outputs="reward")


# ---- slots -------------------------------------------------------------------

counts = st.integers(1, 5).flatmap(
    lambda slots: st.integers(1, 7).flatmap(
        lambda states: st.lists(
            st.lists(st.integers(0, 9), min_size=states, max_size=states),
            min_size=slots,
            max_size=slots,
        )
    )
)


@given(counts)
def test_slots_are_shared_only_if_there_are_too_few(rows):
    together = np.array(rows)
    slots, states = together.shape
    found = assign_slots(together).of_state.tolist()
    assert all(0 <= slot < slots for slot in found)
    own = found if states <= slots else [one for one in found if one != slots - 1]
    assert len(set(own)) == len(own)
    if states > slots:
        assert len(own) == slots - 1


@given(st.permutations(range(6)), st.integers(6, 8))
def test_renumbered_states_keep_their_slots(order, slots):
    together = np.zeros((slots, 6), int)
    together[np.arange(6), order] = [5, 1, 9, 2, 2, 7]
    found = assign_slots(together)
    assert found.of_state[order].tolist() == list(range(6))
    assert found.changes == {}


def test_a_split_state_has_the_slot_before():
    """Of two states at slot 1, the more frequent one stays; the other was there before."""
    found = assign_slots(np.array([[8, 0, 0], [0, 3, 6], [0, 0, 0], [0, 0, 0]]))
    assert found.of_state.tolist() == [0, 2, 1]
    assert found.before.tolist() == [0, 1, 1]
    assert found.changes == {2: 1}


def test_an_unvisited_state_has_no_slot_before():
    found = assign_slots(np.array([[4, 0], [0, 0]]))
    assert found.of_state.tolist() == [0, 1]
    assert found.changes == {}


def test_the_last_slot_is_shared():
    found = assign_slots(np.array([[5, 9, 3, 0], [0, 0, 0, 4]]))
    assert found.of_state.tolist() == [1, 0, 1, 1]
