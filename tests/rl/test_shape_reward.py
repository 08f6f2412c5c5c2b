"""Shaped rewards: what is best stays best, and payments cancel along every episode."""

import dataclasses

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import resolvent as rs
from resolvent.planning.model import Model
from resolvent.rl.potential import Potential
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
    """Play an episode; return Φ at each of its situations, and what was paid, by the wrapper."""
    shaped.reset()
    promise = [shaped.potential.at(*shaped._state.situation)]
    paid, unshaped = [], []
    for action in actions:
        _, reward, terminated, truncated, info = shaped.step(action)
        paid.append(reward)
        unshaped.append(info["unshaped_reward"])
        promise.append(0.0 if terminated else shaped.potential.at(*shaped._state.situation))
        if terminated or truncated:
            break
    return promise, np.array(paid), np.array(unshaped), terminated


@pytest.mark.parametrize("by", ["situation", "states"])
@pytest.mark.parametrize("inside", [True, False])
def test_along_an_episode_the_payments_cancel(plan, by, inside):
    """Whatever is done: all of them are worth −Φ(start), or γ^T·Φ(end) more if it was cut."""
    draw = np.random.default_rng(0)
    ended = set()
    for _ in range(40):
        env = rs.AugmentObservation(house(), plan.machines) if inside else house()
        shaped = rs.wrappers.ShapeReward(env, plan, by=by)
        promise, paid, unshaped, over = potentials(shaped, draw.integers(0, 5, 100).tolist())
        ended.add(over)
        discount = GAMMA ** np.arange(len(paid))
        more = discount @ (paid - unshaped)
        last = GAMMA ** len(paid) * promise[-1]
        assert more == pytest.approx(last - promise[0])
        assert over == (promise[-1] == 0)
    assert ended == {True, False}


def test_around_the_memory_and_around_the_world_it_pays_the_same(plan):
    actions = np.random.default_rng(1).integers(0, 5, 100).tolist()
    inside = rs.wrappers.ShapeReward(
        rs.AugmentObservation(house(), plan.machines, mode="discrete"), plan
    )
    alone = rs.wrappers.ShapeReward(house(), plan)
    assert potentials(inside, actions)[1].tolist() == potentials(alone, actions)[1].tolist()


def test_a_good_step_is_free_and_a_bad_one_costs(plan):
    """By the plan's own values the best way pays nothing but −Φ(start) less than it paid."""
    shaped = rs.wrappers.ShapeReward(house(), plan)
    promise, paid, unshaped, over = potentials(shaped, [2, 3, 0, 1, 3, 4])
    assert over
    assert unshaped.tolist() == [0, 0, 0, 0, 0, 1]
    assert paid == pytest.approx(np.zeros(6), abs=1e-12)
    assert promise[0] == pytest.approx(GAMMA**5)
    for wrong in (0, 1, 4):  # from the corridor: walls, and no chair
        shaped.reset()
        assert shaped.step(wrong)[1] == pytest.approx(GAMMA**6 - GAMMA**5)


def reached(make, steps):
    """The shaped and the plain rewards of all situations within some steps, by playing there."""
    table, seen, paths = {}, set(), [()]
    while paths:
        path = paths.pop()
        env = make()
        env.reset(seed=0)
        for action in path:
            env.step(action)
        here = env._state._augmented.unwrapped.state, *env._state.situation
        if here in seen or len(path) >= steps:
            continue
        seen.add(here)
        for action in range(int(env.action_space.n)):
            env = make()
            env.reset(seed=0)
            for one in path:
                env.step(one)
            _, shaped, ended, _, info = env.step(action)
            led = env._state._augmented.unwrapped.state, *env._state.situation
            table[here, action] = shaped, info["unshaped_reward"], None if ended else led
            if not ended:
                paths.append((*path, action))
    return seen, table


def best_actions(seen, table, which, actions):
    """Value iteration in plain Python: the actions that are as good as any."""
    value = dict.fromkeys(seen, 0.0)

    def worth(here, action):
        *paid, led = table[here, action]
        return paid[which] + (0.0 if led is None else GAMMA * value[led])

    for _ in range(400):
        value = {here: max(worth(here, action) for action in range(actions)) for here in seen}
    return {
        here: {a for a in range(actions) if worth(here, a) > value[here] - 1e-7} for here in seen
    }


@settings(max_examples=40, deadline=None)
@given(worlds(states=4, actions=2), st.integers(0, 3), st.sampled_from(["situation", "states"]))
def test_the_best_policy_stays_the_best(world, seed, by):
    """In random worlds, by value iteration over what the wrapper pays, known or not."""
    env = gym.wrappers.TimeLimit(world, 8)
    few = rs.collect(env, episodes=3, seed=seed)  # too few: much is not known
    try:
        plan = rs.plan(rs.infer(few, noise="none"), few, gamma=GAMMA)
    except (
        rs.ContradictoryTraces,
        rs.errors.ModelError,
    ):  # what is seen does not tell these worlds
        assume(False)

    def make():
        return rs.wrappers.ShapeReward(rs.AugmentObservation(world, plan.machines), plan, by=by)

    # Two situations that differ in the true state alone may differ in what they pay.
    seen, table = reached(make, steps=40)
    actions = int(world.action_space.n)
    assert best_actions(seen, table, 0, actions) == best_actions(seen, table, 1, actions)


def test_an_unknown_situation_promises_what_others_in_its_states_do(plan):
    promise = Potential.of_plan(plan)
    known = [promise.at(*(plan.model.named(n)[0], plan.model.named(n)[1:])) for n in range(9)]
    assert known == plan.pessimistic.tolist()
    states = zip(*plan.model.states.values(), strict=True)
    same = [worth for worth, at in zip(known, states, strict=True) if at == (1, 1)]
    assert promise.at("cellar", (1, 1)) == pytest.approx(np.mean(same))
    assert promise.at("cellar", (0, 1)) == pytest.approx(np.mean(known))  # nobody was there


def test_what_does_not_fit_is_refused(plan):
    with pytest.raises(rs.OptionError, match=r"^by='rooms': use one of 'situation', 'states'$"):
        rs.wrappers.ShapeReward(house(), plan, by="rooms")
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
def test_many_at_once_are_paid_as_one(plan, mode):
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
        _, paid, _, _, infos = shaped.step(actions)
        for number, env in enumerate(alone):
            if over[number] and mode is AutoresetMode.NEXT_STEP:
                env.reset()
                assert paid[number] == 0
                assert not infos["_unshaped_reward"][number]
                over[number] = False
                continue
            _, expected, terminated, truncated, info = env.step(int(actions[number]))
            assert paid[number] == pytest.approx(expected)
            assert infos["unshaped_reward"][number] == info["unshaped_reward"]
            over[number] = terminated or truncated
            ends += over[number]
            if over[number] and mode is AutoresetMode.SAME_STEP:
                env.reset()
                over[number] = False
    assert ends > 5


def test_many_at_once_go_inside_of_the_memory(plan):
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


def test_q_learning_by_a_plan_needs_fewer_steps(plan):
    """From the first value that moves on, the best is where a step costs nothing."""
    wrapped = rs.AugmentObservation(house(), plan.machines)

    def steps(**options):
        found = rs.q_learning(
            wrapped, episodes=200, gamma=GAMMA, seed=0, evaluate_every=1, **options
        )
        return next(one.steps for one in found.evaluations if one.value >= GAMMA**5 - 1e-9)

    assert steps(shaping=plan) < steps() / 2


@pytest.mark.parametrize("counterfactual", [True, False])
def test_q_learning_by_a_plan_is_the_same_in_both_engines(plan, counterfactual):
    wrapped = rs.AugmentObservation(house(), plan.machines)
    options = {"episodes": 60, "gamma": GAMMA, "shaping": plan, "counterfactual": counterfactual}
    native, python = (
        rs.q_learning(wrapped, engine=engine, **options) for engine in ("native", "python")
    )
    assert dataclasses.replace(native, engine="python") == python
    promise = Potential.of_plan(plan)
    for symbol, worth in zip(native.situations, native.potential, strict=True):
        shown = dict(symbol)
        room = house().unwrapped.mechanics.observations[shown["observation"]]
        assert worth == promise.at(room, (shown["transition_state"], shown["reward_state"]))


def test_q_learning_by_a_plan_is_as_with_the_wrapper(plan):
    """One potential, not two: after the same steps the values are the same."""
    options = {"episodes": 40, "gamma": GAMMA, "epsilon": 1.0, "epsilon_decay": 1.0}
    wrapped = rs.AugmentObservation(house(), plan.machines)
    inside = rs.q_learning(wrapped, shaping=plan, **options)
    outside = rs.q_learning(rs.wrappers.ShapeReward(wrapped, plan), **options)
    assert inside.curve.steps.tolist() == outside.curve.steps.tolist()
    values = dict(zip(outside.situations, outside.q, strict=True))
    met = {
        symbol: row
        for symbol, row in zip(inside.situations, inside.q, strict=True)
        if symbol in values
    }
    assert len(met) == len(values) > 5
    for symbol, row in met.items():
        assert row == pytest.approx(values[symbol])


def test_a_plan_of_another_model_is_refused(plan):
    traces = rs.collect(House(), episodes=2, seed=0)
    model = Model.of(plan.machines, traces)
    wrapped = rs.AugmentObservation(house(), plan.machines)
    with pytest.raises(rs.errors.ModelError, match="is of another model than the one given"):
        rs.q_learning(wrapped, shaping=plan, model=model)
