"""Plans for the paper's 25×25 worlds, from traces alone, against sweeps over the true states."""

import pytest

import resolvent as rs
from planning_oracles import WorldEnv, best_values, truth_of_world
from worlds import random_world


@pytest.mark.parametrize("seed", [1, 2])
def test_a_plan_from_3000_traces_is_worth_the_true_optimum_at_every_start(seed: int) -> None:
    world = random_world(seed)
    traces = world.rollouts(3000, 0)
    pair = rs.infer(traces).machines
    assert (pair.transition.states, pair.reward.states) == (7, 2)
    plan = rs.plan(pair, traces, gamma=0.95)
    best = best_values(truth_of_world(world), 0.95)
    starts = plan.model.starts.tolist()
    assert sorted(plan.model.augmented_state(start)[0] for start in starts) == world.starts
    for start in starts:
        true = best[plan.model.augmented_state(start)[0], 0, 0]
        assert plan.pessimistic[start] == pytest.approx(true, rel=1e-12)
    for cell in world.starts[::10]:
        (paid,) = plan.run(WorldEnv(world, cell), episodes=1, max_steps=500).discounted_returns
        assert paid == pytest.approx(best[cell, 0, 0], rel=1e-12)


def test_trusting_constant_answers_promises_what_the_world_does_not_pay() -> None:
    world = random_world(1)
    traces = world.rollouts(3000, 0)
    pair = rs.infer(traces).machines
    best = best_values(truth_of_world(world), 0.999)
    most = max(best[start, 0, 0] for start in world.starts)
    assert rs.plan(pair, traces, gamma=0.999).value <= most
    assert rs.plan(pair, traces, gamma=0.999, trust_constants=True).value > 10 * most
