"""Whether rewards vary by noise, and around which values."""

import numpy as np
import pytest

import resolvent as rs
from resolvent.noise.rewards import assign_reward_levels, find_reward_levels
from resolvent.preprocess.samples import Histories, output_samples
from resolvent.preprocess.timing import LabelTiming
from resolvent.preprocess.transform import RewardLevels
from resolvent.traces import Trace, TraceSet

CURRENT = LabelTiming.CURRENT


def episodes(pay, count=300, length=6, seed=0):
    """Traces of a corridor; `pay` gets the step, the observation, and whether "key" was read."""
    random = np.random.default_rng(seed)
    traces = []
    for _ in range(count):
        seen = random.integers(0, 3, length + 1).tolist()
        labels = [None, *(["key"] if draw < 0.2 else None for draw in random.random(length))]
        read = [any(labels[: step + 1]) for step in range(length)]
        paid = [pay(random, step, seen[step], read[step]) for step in range(length)]
        traces.append(Trace(seen, labels, ["go"] * length, paid))
    return TraceSet(traces)


def truth(seen, key):
    return 2.0 if seen == 2 and key else -0.5 if seen == 1 else 0.0


def test_levels_are_those_of_the_world():
    traces = episodes(lambda random, _, seen, key: random.normal(truth(seen, key), 0.2))
    levels = find_reward_levels(traces, CURRENT)
    assert levels.centers == pytest.approx([-0.5, 0, 2], abs=0.05)
    assert levels.sigma == pytest.approx(0.2, rel=0.1)
    assert levels.exact == ()
    shuffled = traces.take(np.random.default_rng(0).permutation(len(traces)))
    assert find_reward_levels(shuffled, CURRENT) == levels


def test_exact_rewards_stay_exact():
    def pay(random, _, seen, key):
        return random.normal(2, 0.2) if truth(seen, key) == 2 else truth(seen, key)

    levels = find_reward_levels(episodes(pay, 600), CURRENT)
    assert levels.exact == (-0.5, 0.0)
    assert levels.centers == pytest.approx([2], abs=0.1)


@pytest.mark.parametrize(
    "pay",
    [
        lambda random, step, seen, key: truth(seen, key),
        lambda random, step, seen, key: 1 - 0.0137 * step * (seen + 1) + key * 0.31 * seen,
        lambda random, step, seen, key: truth(seen, key) if random.random() > 0.05 else 1.0,
        lambda random, step, seen, key: float(random.integers(0, 30)),
    ],
    ids=["exact", "by the step", "flipped", "dice"],
)
def test_rewards_that_are_exact_or_symbols_have_no_levels(pay):
    assert find_reward_levels(episodes(pay), CURRENT) is None


def test_a_reward_for_each_context_is_no_noise():
    worth = np.random.default_rng(9).normal(size=(6, 3, 2))
    traces = episodes(lambda random, step, seen, key: float(worth[step, seen, int(key)]))
    assert len(traces.rewards) > 16
    assert find_reward_levels(traces, CURRENT) is None


def test_last_digits_are_for_rounding():
    def pay(random, _, seen, key):
        return truth(seen, key) + 1e-8 * random.random()

    assert find_reward_levels(episodes(pay), CURRENT) is None


def test_noise_around_many_values_is_refused():
    worth = np.random.default_rng(9).normal(size=(6, 3, 2))
    traces = episodes(
        lambda random, step, seen, key: worth[step, seen, int(key)] + random.normal(0, 0.1)
    )
    with pytest.raises(rs.TraceError, match="1,800 different rewards at 1,800 steps; round them"):
        find_reward_levels(traces, CURRENT)


def one_log(steps):
    random = np.random.default_rng(0)
    seen = random.integers(0, 3, steps + 1).tolist()
    paid = random.normal([0.0, 1.0, 5.0], 0.1, (steps, 3))[np.arange(steps), seen[:-1]]
    return TraceSet([Trace(seen, [None] * (steps + 1), ["go"] * steps, paid.tolist())])


def test_one_long_log_has_levels_if_enough_rewards_are_unique():
    for steps, stated in ((2_000, False), (2_000, True), (999, True)):
        levels = find_reward_levels(one_log(steps), CURRENT, stated=stated)
        assert levels.centers == pytest.approx([0, 1, 5], abs=0.05)
    assert find_reward_levels(one_log(999), CURRENT) is None


def test_repeated_rewards_in_one_long_log_are_exact():
    log = one_log(2_000)
    rounded = [round(paid, 2) for paid in log[0].rewards]
    again = TraceSet([Trace(log[0].observations, log[0].labels, log[0].actions, rounded)])
    assert len(again.rewards) > 100
    assert find_reward_levels(again, CURRENT) is None


def test_queries_with_one_level_have_one_reward_in_samples():
    levels = RewardLevels((-0.5, 0.0, 2.0), 0.25)
    raw = episodes(lambda random, _, seen, key: random.normal(truth(seen, key), 0.25))
    traces = levels.transform(raw)
    samples = output_samples(traces, Histories.of(traces, CURRENT), "reward")
    seen = traces.at_step(traces.observation_codes)
    assigned = assign_reward_levels(samples, traces, levels)
    outputs = list(samples.outputs)
    assert {outputs[code] for code in assigned.output[seen == 1]} == {-0.5}
    assert {outputs[code] for code in assigned.output[seen == 0]} == {0.0}
    assert np.array_equal(assigned.output[seen == 2], samples.output[seen == 2])
    assert len(set(samples.output[seen == 0].tolist())) > 1
