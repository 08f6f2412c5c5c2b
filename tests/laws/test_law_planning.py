"""Law 9: a plan is worth what it says, and nothing is worth more than it says.

Compared with sweeps over the true states of worlds, in plain Python.
"""

from functools import cache
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import resolvent as rs
from planning_oracles import (
    Truth,
    WorldEnv,
    agrees,
    best_values,
    truth_of_rules,
    truth_of_world,
)
from resolvent.planning.model import Model
from resolvent.preprocess.timing import LabelTiming
from resolvent.worlds import House
from resolvent.worlds.house import HouseRules
from worlds import World, random_world

GAMMA = 0.9
SMALL = {"size": 5, "labels": 3, "tm_states": 2, "rm_states": 3}
timings = pytest.mark.parametrize("timing", LabelTiming)


@cache
def small_world(seed: int) -> tuple[World, Truth, dict[Any, float]]:
    world = random_world(seed, **SMALL)
    truth = truth_of_world(world)
    return world, truth, best_values(truth, GAMMA)


def reward_range(truth: Truth) -> tuple[float, float]:
    paid = [reward for steps in truth.values() for reward, _ in steps.values()]
    return min(paid), max(paid)


def starts_of(model: Model) -> list[tuple[int, Any]]:
    """Situations in which episodes begin, and the true states they stand for."""
    return [(z, (model.augmented_state(z)[0], 0, 0)) for z in model.starts.tolist()]


def close(value: float) -> Any:
    return pytest.approx(value, rel=1e-12, abs=1e-12)


@timings
@pytest.mark.parametrize("goal", ["sofa", "cyanroom"])
def test_in_the_house_a_plan_from_traces_is_optimal(goal: Any, timing: LabelTiming) -> None:
    house = House(goal=goal)
    traces = rs.collect(house, episodes=300, seed=0)
    plan = rs.plan(rs.infer(traces, timing=timing), traces, gamma=GAMMA)
    truth = truth_of_rules(HouseRules(goal))
    best = best_values(truth, GAMMA)[truth.starts[0]]
    assert plan.is_optimal
    assert plan.value == close(best)
    runs = plan.run(house, episodes=2)
    assert runs.discounted_returns.tolist() == [close(best)] * 2
    assert runs.returns.tolist() == [1.0, 1.0]


@timings
@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_in_random_worlds_a_plan_from_traces_is_optimal(seed: int, timing: LabelTiming) -> None:
    world, _, best = small_world(seed)
    traces = world.rollouts(2000, seed)
    plan = rs.plan(rs.infer(traces, timing=timing), traces, gamma=GAMMA)
    assert plan.is_optimal
    assert (
        sorted(plan.model.augmented_state(z)[0] for z in plan.model.starts.tolist()) == world.starts
    )
    for start in world.starts:
        (paid,) = plan.run(WorldEnv(world, start), episodes=1, max_steps=500).discounted_returns
        assert paid == close(best[start, 0, 0])


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 5), st.integers(0, 1000), st.integers(1, 80), st.booleans())
def test_the_truth_lies_between_the_two_values(number, seed, episodes, redundant) -> None:
    world, truth, best = small_world(number)
    traces = world.rollouts(episodes, seed)
    pair = rs.infer(traces, options=rs.InferenceOptions(remove_redundant=redundant)).machines
    plan = rs.plan(pair, traces, gamma=GAMMA, reward_range=reward_range(truth))
    starts = starts_of(plan.model)
    assume(agrees(plan.model, truth, lambda state: state[0], starts))
    for z, state in starts:
        assert plan.pessimistic[z] <= best[state] + 1e-9
        assert plan.optimistic[z] >= best[state] - 1e-9
        (paid,) = plan.run(
            WorldEnv(world, state[0]), episodes=1, max_steps=500, on_unseen="random", seed=seed
        ).discounted_returns
        assert paid >= plan.pessimistic[z] - 1e-9


def carry_out(env: Any, experiment: Any, seed: int) -> rs.TraceSet:
    """Do what an experiment says, and go on at random."""
    values = {name: code for code, name in enumerate(getattr(env, "action_names", range(4)))}
    ahead = [values[action] for action in (*experiment.actions, experiment.action)]
    env.action_space.seed(seed)
    steps = len(ahead) + 10
    return rs.collect(
        env,
        episodes=1,
        max_steps=steps,
        policy=lambda observation: ahead.pop(0) if ahead else env.action_space.sample(),
    )


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 5), st.integers(0, 1000), st.integers(1, 40))
def test_after_an_experiment_its_step_is_known(number, seed, episodes) -> None:
    world, truth, _ = small_world(number)
    traces = world.rollouts(episodes, seed)
    plan = rs.plan(rs.infer(traces), traces, gamma=GAMMA, reward_range=reward_range(truth))
    experiment = plan.next_experiment
    if experiment is None:
        return
    assert not plan.model.known[
        plan.model.find(*experiment.augmented_state), plan.model.actions.code(experiment.action)
    ]
    more = carry_out(WorldEnv(world, experiment.start[0]), experiment, seed)
    assume(len(more[0]) > len(experiment.actions) + 1 or more[0].terminated)
    both = traces + more
    model = Model.of(rs.infer(both).machines, both)
    here = model.find(experiment.start[0], 0, 0)
    for action in (*experiment.actions, experiment.action):
        assert here is not None
        code = model.actions.code(action)
        assert model.known[here, code] or model.sometimes_ends[here, code]
        here = int(model.next_state[here, code])
        if here < 0:
            break


def test_experiments_close_the_gap() -> None:
    # Enough traces for the right machines, but not for every step.
    house, truth = House(), truth_of_rules(HouseRules("sofa"))
    traces = rs.collect(house, episodes=10, seed=1)
    unknown = []
    for number in range(20):
        plan = rs.plan(rs.infer(traces), traces, gamma=GAMMA)
        unknown.append(plan.model.unknown_steps)
        if plan.next_experiment is None:
            break
        traces += carry_out(house, plan.next_experiment, number)
    assert len(unknown) > 1
    assert unknown == sorted(set(unknown), reverse=True)
    assert plan.is_optimal
    assert plan.value == close(best_values(truth, GAMMA)[truth.starts[0]])
