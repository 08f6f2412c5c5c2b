"""Values that vary → how many centers there are, and where."""

import numpy as np
import pytest

from resolvent.noise.mixture import Groups, find_centers


def groups(random, centers, sizes, noise):
    """A group of each size around each of the centers."""
    key = np.repeat(np.arange(len(sizes)), sizes)
    return Groups.by(key, np.repeat(centers, sizes) + noise(random, len(key)))


def normal(random, count):
    return random.normal(0, 1, count)


def laplace(random, count):
    return random.laplace(0, 0.5**0.5, count)


def test_repeated_values_separate_centers_that_overlap():
    random = np.random.default_rng(0)
    centers = random.choice([0.0, 2.0, 9.0], 4_000, p=[0.9, 0.08, 0.02])
    mixture = find_centers(groups(random, centers, random.integers(1, 8, 4_000), normal), 1.0)
    assert mixture.centers == pytest.approx([0, 2, 9], abs=0.15)
    assert mixture.shares == pytest.approx([0.9, 0.08, 0.02], abs=0.01)
    assert mixture.outliers.sum() < 0.01


def test_the_order_of_values_makes_no_difference():
    random = np.random.default_rng(1)
    grouped = groups(random, random.choice([0.0, 3.0], 500), np.full(500, 2), normal)
    mixed = random.permutation(500)
    shuffled = Groups(grouped.size[mixed], grouped.mean[mixed], grouped.squares[mixed])
    assert (
        find_centers(grouped, 1.0).centers.tolist() == find_centers(shuffled, 1.0).centers.tolist()
    )


def test_one_center_stays_one_with_many_values():
    random = np.random.default_rng(2)
    grouped = groups(random, np.zeros(200_000), np.ones(200_000, int), normal)
    assert len(find_centers(grouped, 1.0).centers) == 1


def test_with_repeats_noise_that_is_not_normal_adds_no_centers():
    random = np.random.default_rng(3)
    grouped = groups(random, np.zeros(60_000), np.repeat([1, 12], [59_000, 1_000]), laplace)
    assert len(find_centers(grouped, 1.0).centers) > 1
    assert len(find_centers(grouped, 1.0, normal_size=12).centers) == 1


def test_outliers_are_no_centers():
    random = np.random.default_rng(4)
    grouped = groups(random, random.choice([0.0, 50.0], 5_000), np.ones(5_000, int), normal)
    far = random.uniform(-100, 100, 100)
    together = Groups(np.ones(5_100), np.concatenate([grouped.mean, far]), np.zeros(5_100))
    mixture = find_centers(together, 1.0)
    assert mixture.centers == pytest.approx([0, 50], abs=0.1)
    assert mixture.outliers.sum() == pytest.approx(0.02, abs=0.005)


def test_values_that_fill_a_range_are_not_clustered():
    random = np.random.default_rng(5)
    grouped = groups(random, random.uniform(0, 60, 3_000), np.full(3_000, 9), normal)
    assert find_centers(grouped, 1.0) is None
