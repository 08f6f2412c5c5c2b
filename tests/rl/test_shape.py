"""Shaped rewards keep the optimal policy, and cancel along every episode."""

import dataclasses

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import resolvent as rs
from resolvent.planning.model import Model
from resolvent.rl.shape import Potential, values_of_states
from resolvent.traces import Vocabulary
from resolvent.worlds import House, TMaze
from table_worlds import worlds

GAMMA = 0.9


def house():
    return gym.make("resolvent/House-v0", max_episode_steps=30)


@pytest.fixture(scope="module")
def plan():
    traces = rs.collect(House(), episodes=200, seed=0)
    return rs.plan(rs.infer(traces), traces, gamma=GAMMA)


def potentials(shaped, actions):
    """Play an episode; return its potentials, shaped rewards, rewards, and whether it terminated."""
    shaped.reset()
    potential = [shaped.potential.at(*shaped.augmented_state)]
    rewards, unshaped = [], []
    for action in actions:
        _, reward, terminated, truncated, info = shaped.step(action)
        rewards.append(reward)
        unshaped.append(info["unshaped_reward"])
        potential.append(0.0 if terminated else shaped.potential.at(*shaped.augmented_state))
        if terminated or truncated:
            break
    return potential, np.array(rewards), np.array(unshaped), terminated


@pytest.mark.parametrize("inside", [True, False])
def test_along_an_episode_shaping_cancels(plan, inside):
    """For any actions the sum is −Φ(start), or γ^T·Φ(end) more after truncation."""
    draw = np.random.default_rng(0)
    ended = set()
    for _ in range(40):
        env = rs.AugmentObservation(house(), plan.machines) if inside else house()
        shaped = rs.wrappers.ShapeReward(env, plan)
        potential, rewards, unshaped, over = potentials(shaped, draw.integers(0, 5, 100).tolist())
        ended.add(over)
        discount = GAMMA ** np.arange(len(rewards))
        last = GAMMA ** len(rewards) * potential[-1]
        assert discount @ (rewards - unshaped) == pytest.approx(last - potential[0])
        assert over == (potential[-1] == 0)
    assert ended == {True, False}


def test_shaping_is_the_same_around_the_wrapper_and_the_environment(plan):
    actions = np.random.default_rng(1).integers(0, 5, 100).tolist()
    inside = rs.wrappers.ShapeReward(
        rs.AugmentObservation(house(), plan.machines, mode="discrete"), plan
    )
    alone = rs.wrappers.ShapeReward(house(), plan)
    assert potentials(inside, actions)[1].tolist() == potentials(alone, actions)[1].tolist()


def test_optimal_steps_have_shaped_reward_0(plan):
    shaped = rs.wrappers.ShapeReward(house(), plan)
    potential, rewards, unshaped, over = potentials(shaped, [2, 3, 0, 1, 3, 4])
    assert over
    assert unshaped.tolist() == [0, 0, 0, 0, 0, 1]
    assert rewards == pytest.approx(np.zeros(6), abs=1e-12)
    assert potential[0] == pytest.approx(GAMMA**5)
    for wrong in (0, 1, 4):  # from the corridor: walls, and no chair
        shaped.reset()
        assert shaped.step(wrong)[1] == pytest.approx(GAMMA**6 - GAMMA**5)


def reached(make, steps):
    """Return all states within some steps, with the shaped and the plain reward of each step."""
    table, seen, paths = {}, set(), [()]
    while paths:
        path = paths.pop()
        env = make()
        env.reset(seed=0)
        for action in path:
            env.step(action)
        here = env.unwrapped.state, env.augmented_state[0], env.augmented_state[1:]
        if here in seen or len(path) >= steps:
            continue
        seen.add(here)
        for action in range(int(env.action_space.n)):
            env = make()
            env.reset(seed=0)
            for one in path:
                env.step(one)
            _, shaped, ended, _, info = env.step(action)
            after = env.unwrapped.state, env.augmented_state[0], env.augmented_state[1:]
            table[here, action] = shaped, info["unshaped_reward"], None if ended else after
            if not ended:
                paths.append((*path, action))
    return seen, table


def best_actions(seen, table, which, actions):
    """Return the optimal actions, by value iteration in plain Python."""
    value = dict.fromkeys(seen, 0.0)

    def value_of(here, action):
        *rewards, after = table[here, action]
        return rewards[which] + (0.0 if after is None else GAMMA * value[after])

    for _ in range(400):
        value = {here: max(value_of(here, action) for action in range(actions)) for here in seen}
    return {
        here: {a for a in range(actions) if value_of(here, a) > value[here] - 1e-7} for here in seen
    }


@settings(max_examples=40, deadline=None)
@given(worlds(states=4, actions=2), st.integers(0, 3))
def test_shaping_keeps_the_optimal_policy(world, seed):
    """In random worlds with a plan from too few traces, by value iteration over shaped rewards."""
    env = gym.wrappers.TimeLimit(world, 8)
    few = rs.collect(env, episodes=3, seed=seed)
    try:
        plan = rs.plan(rs.infer(few, noise="none"), few, gamma=GAMMA)
    except (rs.ContradictoryTraces, rs.errors.ModelError):  # labels do not determine the state
        assume(False)

    def make():
        return rs.wrappers.ShapeReward(rs.AugmentObservation(world, plan.machines), plan)

    # Augmented states of different true states may have different rewards.
    seen, table = reached(make, steps=40)
    actions = int(world.action_space.n)
    assert best_actions(seen, table, 0, actions) == best_actions(seen, table, 1, actions)


def test_the_potential_of_an_unknown_augmented_state_is_a_mean(plan):
    potential = Potential.of_plan(plan)
    known = [potential.at(*plan.model.augmented_state(n)) for n in range(9)]
    assert known == plan.pessimistic.tolist()
    states = zip(*plan.model.states.values(), strict=True)
    same = [value for value, each in zip(known, states, strict=True) if each == (1, 1)]
    assert potential.at("cellar", 1, 1) == pytest.approx(np.mean(same))
    assert potential.at("cellar", 0, 1) == pytest.approx(np.mean(known))  # unreachable states


def test_invalid_arguments_are_refused(plan):
    with pytest.raises(rs.OptionError, match=r"^gamma=2: use a number above 0, up to 1$"):
        rs.wrappers.ShapeReward(house(), plan, gamma=2)
    with pytest.raises(rs.OptionError, match=r"^plan is a MachinePair: give what rs.plan returned"):
        rs.wrappers.ShapeReward(house(), plan.machines)
    with pytest.raises(rs.errors.ModelError, match="which the environment lacks"):
        rs.wrappers.ShapeReward(TMaze(), plan)
    with pytest.raises(rs.OptionError, match="use VectorShapeReward"):
        rs.wrappers.ShapeReward(gym.make_vec("resolvent/House-v0", num_envs=2), plan)
    few = rs.infer(rs.collect(House(), episodes=1, seed=0)).machines
    with pytest.raises(
        rs.errors.ModelError, match="shows another transition machine than the plan's"
    ):
        rs.wrappers.ShapeReward(rs.AugmentObservation(house(), few), plan)
    with pytest.raises(rs.OptionError, match="finds the labels already"):
        rs.wrappers.ShapeReward(rs.AugmentObservation(house(), plan.machines), plan, labels="given")


@pytest.mark.parametrize("mode", AutoresetMode)
def test_vector_shaping_equals_single_shaping(plan, mode):
    count = 3
    envs = SyncVectorEnv([house] * count, autoreset_mode=mode)
    shaped = rs.wrappers.VectorShapeReward(envs, plan)
    alone = [rs.wrappers.ShapeReward(house(), plan) for _ in range(count)]
    shaped.reset(seed=0)
    for env in alone:
        env.reset()
    draw = np.random.default_rng(0)
    over = np.zeros(count, bool)
    ends = 0
    for _ in range(150):
        actions = draw.integers(0, 5, count)
        if mode is AutoresetMode.DISABLED and over.any():
            shaped.reset(options={"reset_mask": over.copy()})
            for env in np.array(alone, object)[over]:
                env.reset()
            over[:] = False
        _, rewards, _, _, infos = shaped.step(actions)
        for number, env in enumerate(alone):
            if over[number] and mode is AutoresetMode.NEXT_STEP:
                env.reset()
                assert rewards[number] == 0
                assert not infos["_unshaped_reward"][number]
                over[number] = False
                continue
            _, expected, terminated, truncated, info = env.step(int(actions[number]))
            assert rewards[number] == pytest.approx(expected)
            assert infos["unshaped_reward"][number] == info["unshaped_reward"]
            over[number] = terminated or truncated
            ends += over[number]
            if over[number] and mode is AutoresetMode.SAME_STEP:
                env.reset()
                over[number] = False
    assert ends > 5


def test_vector_shaping_goes_inside(plan):
    envs = gym.make_vec("resolvent/House-v0", num_envs=2, vectorization_mode="sync")
    outside = rs.wrappers.VectorAugmentObservation(
        rs.wrappers.VectorShapeReward(envs, plan), plan.machines
    )
    outside.reset(seed=0)
    assert outside.step([2, 2])[0]["transition_state"].tolist() == [1, 1]
    with pytest.raises(rs.OptionError, match="goes inside of VectorAugmentObservation"):
        rs.wrappers.VectorShapeReward(
            rs.wrappers.VectorAugmentObservation(envs, plan.machines), plan
        )


def test_q_learning_with_a_plan_needs_fewer_steps(plan):
    wrapped = rs.AugmentObservation(house(), plan.machines)

    def steps(**options):
        found = rs.q_learning(
            wrapped, episodes=200, gamma=GAMMA, seed=0, evaluate_every=1, **options
        )
        return next(one.steps for one in found.evaluations if one.value >= GAMMA**5 - 1e-9)

    assert steps(shaping=plan) < steps() / 2


@pytest.mark.parametrize("counterfactual", [True, False])
def test_q_learning_with_a_plan_is_the_same_in_both_engines(plan, counterfactual):
    wrapped = rs.AugmentObservation(house(), plan.machines)
    options = {"episodes": 60, "gamma": GAMMA, "shaping": plan, "counterfactual": counterfactual}
    native, python = (
        rs.q_learning(wrapped, engine=engine, **options) for engine in ("native", "python")
    )
    assert dataclasses.replace(native, engine="python") == python


def test_q_learning_with_a_plan_equals_the_wrapper(plan):
    options = {"episodes": 40, "gamma": GAMMA, "epsilon": 1.0, "epsilon_decay": 1.0}
    wrapped = rs.AugmentObservation(house(), plan.machines)
    inside = rs.q_learning(wrapped, shaping=plan, **options)
    outside = rs.q_learning(rs.wrappers.ShapeReward(wrapped, plan), **options)
    assert inside.curve.steps.tolist() == outside.curve.steps.tolist()
    values = dict(zip(outside.observations, outside.q, strict=True))
    met = {
        symbol: row
        for symbol, row in zip(inside.observations, inside.q, strict=True)
        if symbol in values
    }
    assert len(met) == len(values) > 5
    potential, rooms = Potential.of_plan(plan), house().unwrapped.mechanics.observations
    for symbol, row in met.items():
        shown = dict(symbol)
        states = shown["transition_state"], shown["reward_state"]
        shift = potential.at(rooms[shown["observation"]], *states)
        assert row == pytest.approx(values[symbol] + shift)


def test_a_plan_of_another_model_is_refused(plan):
    traces = rs.collect(House(), episodes=2, seed=0)
    model = Model.of(plan.machines, traces)
    wrapped = rs.AugmentObservation(house(), plan.machines)
    with pytest.raises(rs.errors.ModelError, match="shaping is a plan of another model"):
        rs.q_learning(wrapped, shaping=plan, model=model)


# ---- values of the machines' states ------------------------------------------


def model_of(observation, states, following, reward, ends):
    """Return a model; steps that lead nowhere and do not end are unknown."""
    following, ends = np.array(following, np.int32), np.array(ends, bool)
    known = (following >= 0) | ends
    return Model(
        observations=Vocabulary(["here", "there", "far"]),
        actions=Vocabulary(["go", "stay"]),
        observation=np.array(observation, np.int32),
        states={
            "transition": np.array([q for q, _ in states], np.int32),
            "reward": np.array([u for _, u in states], np.int32),
        },
        next_state=following,
        reward=np.where(known, np.array(reward, float), np.nan),
        ends=ends,
        known=known,
        sometimes_ends=np.zeros(known.shape, bool),
        starts=np.array([0], np.int32),
        start_counts=np.array([1]),
        reward_range=(0.0, 1.0),
        labels=Vocabulary([frozenset()]),
        label_read=np.where(following >= 0, 0, -1).astype(np.int32),
        first_label=np.zeros(1, np.int32),
    )


def test_transitions_between_states_take_their_number_of_steps():
    """Two steps within (0, 0), then one into (1, 0), whose first step has reward 8 and ends."""
    walk = model_of(
        observation=[0, 1, 2, 0],
        states=[(0, 0), (0, 0), (0, 0), (1, 0)],
        following=[[1, 0], [2, 1], [3, 2], [-1, 3]],
        reward=[[0, 0], [0, 0], [0, 0], [8, 0]],
        ends=[[0, 0], [0, 0], [0, 0], [1, 0]],
    )
    # In (1, 0): 8 at once. In (0, 0): it takes 1, 2 or 3 steps to the value 8.
    assert values_of_states(walk, (2, 1), 0.5) == pytest.approx(np.array([[(4 + 2 + 1) / 3], [8]]))


def test_an_unknown_state_has_potential_0():
    lost = model_of(
        observation=[0, 1],
        states=[(0, 0), (0, 1)],
        following=[[1, -1], [-1, -1]],
        reward=[[3, 100], [100, 100]],
        ends=[[0, 0], [0, 0]],
    )
    assert values_of_states(lost, (1, 3), 0.5) == pytest.approx(np.array([[3.0, 0.0, 0.0]]))


def test_the_potential_is_the_least_cost_if_all_paths_cost():
    costly = model_of(
        observation=[0, 1],
        states=[(0, 0), (0, 1)],
        following=[[1, 1], [-1, -1]],
        reward=[[-1, -4], [-2, -6]],
        ends=[[0, 0], [1, 1]],
    )
    assert values_of_states(costly, (1, 2), 0.5) == pytest.approx(np.array([[-1 - 0.5 * 2, -2.0]]))
