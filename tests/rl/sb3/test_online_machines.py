"""States of growing machines in a fixed space, for environments here and in other processes."""

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import resolvent as rs
from resolvent.rl.tracker import StateTracker

pytest.importorskip("stable_baselines3")

import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecNormalize

from resolvent.rl.sb3 import InferMachines, OnlineMachineWrapper
from resolvent.rl.sb3.online_machines import assign_slots, transfer_weights

ROOMS, MOST = 4, 3


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


# ---- machines inferred while learners train ----


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


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
