"""The worst plausible probabilities and the values of policies, against plain computations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resolvent.planning.confidence import RewardCounts, worst_probabilities
from resolvent.planning.stochastic import MarkovChain
from resolvent.replay.counts import GroupedCounts


def divergence(p, q):
    return sum(one * np.log(one / other) for one, other in zip(p, q, strict=True) if one > 0)


def least_by_search(share, value, lowest, radius):
    """Try many chances along the curve on which the least of two or three values lies."""
    best = float(np.dot(share, value))
    full, values = np.append(share, 0.0), np.append(value, lowest)
    grid = np.linspace(1e-6, 1, 200)
    for a in grid:
        for b in grid if len(share) == 2 else [0.0]:
            q = np.array([a, b, 1 - a - b]) if len(share) == 2 else np.array([a, 1 - a])
            if q.min() < 0 or (q[:-1] <= 0).any():
                continue
            if divergence(full, q) <= radius:
                best = min(best, float(np.dot(q, values)))
    return best


@pytest.mark.parametrize("share", [(1.0,), (0.5, 0.5), (0.05, 0.95), (0.9, 0.1)])
@pytest.mark.parametrize("value", [(0.0, 1.0), (0.4, 0.3), (1.0, 1.0)])
@pytest.mark.parametrize("lowest", [0.0, -2.0])
@pytest.mark.parametrize("radius", [0.01, 0.3])
def test_no_plausible_probabilities_have_a_lower_mean(share, value, lowest, radius):
    share, value = np.array(share), np.array(value[: len(share)])
    row = np.zeros(len(share), int)
    chance, rest = worst_probabilities(row, share, value, np.array([radius]), np.array([lowest]))
    assert chance.sum() + rest[0] == pytest.approx(1)
    assert divergence(share, chance) <= radius + 1e-6
    attained = float(chance @ value + rest[0] * lowest)
    searched = least_by_search(share, value, lowest, radius)
    assert attained <= searched + 1e-9
    assert attained == pytest.approx(searched, abs=0.03)


def test_nearly_equal_values_are_treated_as_the_lowest():
    share, value = np.full(2, 0.5), np.array([5e-324, 1.0])
    chance, rest = worst_probabilities(np.zeros(2, int), share, value, np.array([0.1]), np.zeros(1))
    assert chance.round(3).tolist() == [0.713, 0.287]
    assert rest.tolist() == [0]


@pytest.mark.parametrize("pay", [1.0, 1e200, -1e300, 1e-300])
def test_values_scale_with_rewards_of_any_size(pay):
    chain = MarkovChain(np.arange(2), np.array([1, 0]), np.array([0.5, 1.0]), np.array([pay, 0.0]))
    # x = reward + y / 2 and y = x, without discount.
    assert chain.value(1.0, np.zeros(2)) == pytest.approx([2 * pay, 2 * pay], rel=1e-9, abs=0)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6), st.integers(1, 8))
def test_a_batch_of_rows_equals_single_rows(seed, rows):
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 5, rows)
    row = np.repeat(np.arange(rows), sizes)
    share = random.random(len(row)) + 0.01
    share /= np.bincount(row, share)[row]
    value, radius = random.choice([0.0, 0.3, 1.0], len(row)), random.random(rows) * 0.5 + 1e-3
    chance, rest = worst_probabilities(row, share, value, radius, np.zeros(rows))
    for one in range(rows):
        at = row == one
        alone, left = worst_probabilities(
            np.zeros(sizes[one], int), share[at], value[at], radius[[one]], np.zeros(1)
        )
        assert chance[at] == pytest.approx(alone)
        assert rest[one] == pytest.approx(left[0])
        assert divergence(share[at], alone) <= radius[one] * (1 + 1e-6)


def test_an_unseen_outcome_gets_all_the_probability_within_the_radius():
    # From one value alone, KL = −log(1 − taken).
    chance, rest = worst_probabilities(
        np.zeros(1, int), np.ones(1), np.ones(1), np.array([0.2]), np.zeros(1)
    )
    assert rest[0] == pytest.approx(1 - np.exp(-0.2))
    assert chance[0] == pytest.approx(np.exp(-0.2))


@pytest.mark.parametrize("gamma", [0.5, 0.99, 1.0])
@pytest.mark.parametrize("size", [1, 5, 200])
def test_the_value_solves_the_equations(gamma, size):
    random = np.random.default_rng(size)
    table = random.dirichlet(np.full(size, 0.1), size) * random.uniform(0.9, 0.999, (size, 1))
    reward = random.normal(size=size)
    row, following = np.nonzero(table)
    chain = MarkovChain(row, following, table[row, following], reward)
    truth = np.linalg.solve(np.eye(size) - gamma * table, reward)
    assert chain.value(gamma, np.zeros(size)) == pytest.approx(truth, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.99, 0.01), (0.25, 0.25, 0.25, 0.25)])
def test_the_true_mean_of_a_function_is_plausible(shares):
    """The lowest plausible mean is above the true one in at most 5 of 100 cases, at any length."""
    random, value = np.random.default_rng(0), np.arange(len(shares))[::-1] + 0.5
    truth = float(np.dot(shares, value))
    for n in (1, 5, 50, 400):
        drawn = random.choice(len(shares), (400, n), p=shares)
        counts = GroupedCounts.of(np.repeat(np.arange(400), n), drawn.ravel())
        chance, rest = worst_probabilities(
            counts.row,
            counts.share,
            value[counts.value],
            np.full(400, np.log(1 / 0.05) / n),
            np.zeros(400),
        )
        lowest = np.bincount(counts.row, chance * value[counts.value]) + 0 * rest
        assert (lowest > truth).mean() <= 0.05


def test_rows_with_large_counts():
    keys = np.array([2**61, 5, 2**61, 2**60])
    tally = GroupedCounts.of(keys, np.array([7, 0, 7, 3]))
    assert tally.key.tolist() == [5, 2**60, 2**61]
    assert (tally.value.tolist(), tally.count.tolist()) == ([0, 3, 7], [1, 1, 2])
    assert tally.find(np.array([2**60, 4])).tolist() == [1, -1]


def drawn_pays(random):
    """Two rows of rewards and their true means: a few rewards, then any between −1 and 1."""
    p = random.dirichlet(np.full(3, 0.5))
    few = random.choice([-1.0, 0.0, 0.5], 300, p=p)
    any_reward = random.beta(0.5, 2.0, 300) * 2 - 1
    return np.stack([few, any_reward]), np.array([p @ [-1.0, 0.0, 0.5], 0.2 * 2 - 1])


def test_the_true_mean_reward_is_within_its_bounds():
    random, missed = np.random.default_rng(0), np.zeros(2)
    for _ in range(200):
        pays, means = drawn_pays(random)
        for n in (1, 10, 300):
            counts = RewardCounts.of(np.repeat([0, 1], n), pays[:, :n].ravel())
            least, most = counts.bounds(np.log(1 / 0.05), (-1.0, 1.0))
            assert (least <= counts.mean).all()
            assert (counts.mean <= most).all()
            missed += (means < least).sum(), (means > most).sum()
    assert (missed <= 0.05 * 200 * 3 * 2).all()


def test_constant_rewards_have_narrower_bounds_than_a_coin():
    steady = RewardCounts.of(np.zeros(400, int), np.zeros(400))
    coin = RewardCounts.of(np.zeros(400, int), np.tile([-1.0, 1.0], 200))
    (low,), (high,) = steady.bounds(3.0, (-1.0, 1.0))
    (lower,), (higher,) = coin.bounds(3.0, (-1.0, 1.0))
    assert -low == pytest.approx(high)
    assert 5 * high < higher
    assert 5 * low > lower
    # One nat in 800: e^(−1/800) of the probability remains for observed outcomes.
    (least,) = steady.least(np.array([1 / 800]), -1.0)
    assert least == pytest.approx(np.exp(-1 / 800) - 1)


def test_reward_rows_are_the_ones_with_more_observations():
    first = RewardCounts.of(np.array([1, 1, 2]), np.array([0.5, 1.5, 3.0]))
    second = RewardCounts.of(np.array([1, 2, 2, 7]), np.array([9.0, 4.0, 5.0, -1.0]))
    both = first.better_known(second)
    assert both.counts.key.tolist() == [1, 2, 7]
    assert both.mean.tolist() == [1.0, 4.5, -1.0]
    nothing = RewardCounts.of(np.zeros(0, np.int64), np.zeros(0))
    assert (
        first.better_known(nothing).mean.tolist()
        == nothing.better_known(first).mean.tolist()
        == [1.0, 3.0]
    )
