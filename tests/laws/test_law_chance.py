"""Law: where answers are noisy, a plan's value lies within its bounds, and so does the truth.

Compared with sweeps over the true chances, in plain NumPy.
"""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import resolvent as rs
from chance_worlds import Lottery, learned
from resolvent.planning.model import Model

GAMMA = 0.8


def planned(world, traces, **options):
    return rs.plan(learned(traces), traces, **{"gamma": GAMMA, **options})


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.integers(60, 3_000), st.sampled_from([0.0, -1.0]))
def test_shares_sum_to_one_and_the_value_lies_between_its_bounds(seed, steps, low):
    world = Lottery(seed, low=low)
    traces = world.traces(steps, seed)
    result = learned(traces)
    assume(result.is_noisy)
    plan = rs.plan(result, traces, gamma=GAMMA)
    chances = plan.model.outcomes
    sums = np.bincount(chances.step, chances.frequency, plan.model.known.size)
    assert sums == pytest.approx(plan.model.known.ravel().astype(float))
    assert (chances.frequency > 0).all()
    assert (plan.pessimistic <= plan.expected).all()
    assert (plan.expected <= plan.optimistic).all()
    least, most = plan.model.reward_range
    assert plan.optimistic.max() <= max(most, most / (1 - GAMMA)) + 1e-6
    assert plan.pessimistic.min() >= min(least, least / (1 - GAMMA)) - 1e-6
    assert not plan.is_optimal


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.integers(60, 3_000), st.sampled_from([0.0, -1.0]))
def test_the_truth_lies_between_the_bounds(seed, steps, low):
    # At 95% one of twenty may be wrong; the bounds are wide enough that none is.
    world = Lottery(seed, low=low)
    traces = world.traces(steps, seed)
    result = learned(traces)
    assume(result.is_noisy)
    plan = rs.plan(result, traces, gamma=GAMMA, reward_range=(low, 1.0))
    best, own = world.values(GAMMA), world.values(GAMMA, world.policy_of(plan))
    for z in plan.model.starts.tolist():
        state = plan.model.augmented_state(z)[0]
        assert plan.pessimistic[z] <= own[state] + 1e-9
        assert plan.optimistic[z] >= best[state] - 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("states", [1, 2, 5, 12])
def test_bounds_and_values_of_two_hundred_worlds(states):
    """Both bounds hold with 97.5% each, and values are right on average."""
    holds, luck, scale = np.zeros(2), [], []
    for seed in range(50):
        for steps in (40 * states, 400 * states):
            world = Lottery(seed, states=states, low=-1.0)
            plan = planned(world, world.traces(steps, seed), reward_range=(-1.0, 1.0))
            if plan.confidence is None:  # nothing varied
                holds += 1
                continue
            starts = [plan.model.augmented_state(z)[0] for z in plan.model.starts.tolist()]
            weights = plan.model.start_counts
            best, own = (
                float(np.average(values[starts], weights=weights))
                for values in (world.values(GAMMA), world.values(GAMMA, world.policy_of(plan)))
            )
            least, most = map(plan.model.mean_at_starts, (plan.pessimistic, plan.optimistic))
            holds += least <= own + 1e-9, most >= best - 1e-9
            luck.append(plan.value - own)
            scale.append(abs(best))
    assert (holds >= 0.975 * 100).all()
    assert abs(np.mean(luck)) < 0.15 * np.mean(scale)


@pytest.mark.parametrize("seed", range(6))
def test_with_many_steps_the_plan_is_optimal(seed):
    world = Lottery(seed, low=-1.0)
    plan = planned(world, world.traces(40_000, seed))
    best, own = world.values(GAMMA), world.values(GAMMA, world.policy_of(plan))
    starts = [plan.model.augmented_state(z)[0] for z in plan.model.starts.tolist()]
    weights = plan.model.start_counts
    truth, got = (float(np.average(one[starts], weights=weights)) for one in (best, own))
    assert got == pytest.approx(truth, rel=0.02)
    assert plan.value == pytest.approx(truth, rel=0.04, abs=0.01)


@pytest.mark.parametrize("gamma", [0.8, 0.95])
@pytest.mark.parametrize("seed", range(8))
def test_without_noise_the_stochastic_plan_equals_the_deterministic_one(seed, gamma, monkeypatch):
    # The same machines, once as they are and once taken for noisy ones.
    world = Lottery(seed, sure=True, low=-1.0)
    traces = world.traces(3_000, seed)
    machines = rs.infer(traces).machines
    sure = rs.plan(machines, traces, gamma=gamma)
    monkeypatch.setattr(type(machines.transition), "is_noisy", property(lambda _: True))
    model = Model.of(machines, traces)
    assert model.outcomes is not None
    assert (model.outcomes.frequency == 1).all()
    for name in ("observation", "next_state", "reward", "ends", "known", "starts"):
        same = np.array_equal(getattr(model, name), getattr(sure.model, name), equal_nan=True)
        assert same, name
    plan = rs.plan(machines, traces, gamma=gamma)
    assert plan.value == pytest.approx(sure.value, rel=1e-9, abs=1e-12)
    assert plan.expected[plan.model.starts] == pytest.approx(sure.pessimistic[sure.model.starts])


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10_000))
def test_the_order_of_traces_makes_no_difference(seed):
    world = Lottery(seed)
    traces = world.traces(500, seed)
    result = learned(traces)
    assume(result.is_noisy)
    shuffled = traces.take(np.random.default_rng(seed).permutation(len(traces)))
    one, other = (rs.plan(result, each, gamma=GAMMA) for each in (traces, shuffled))
    assert one == other
