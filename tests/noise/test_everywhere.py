"""In how many questions answers are odd: chance is everywhere, missing memory is somewhere."""

import numpy as np
import pytest

from resolvent.noise.outputs import estimate_query_noise


def drawn(questions, asked, share, chance, seed=0):
    random = np.random.default_rng(seed)
    times = random.integers(1, asked, questions)
    odd = random.binomial(times, np.where(np.arange(questions) < share * questions, chance, 0.0))
    return times, odd


@pytest.mark.parametrize("chance", [0.03, 0.1, 0.25])
def test_chance_is_everywhere(chance):
    found = estimate_query_noise(*drawn(600, 20, 1.0, chance))
    assert found.everywhere
    assert not found.in_few
    assert found.share > 0.8
    assert found.chance == pytest.approx(chance, rel=0.3)


@pytest.mark.parametrize("chance", [0.1, 0.3, 0.5])
def test_memory_that_is_missing_is_somewhere(chance):
    found = estimate_query_noise(*drawn(600, 20, 0.15, chance))
    assert found.in_few
    assert not found.everywhere
    assert found.share == pytest.approx(0.15, abs=0.06)


def test_little_is_no_proof_of_anything():
    for asked, odd in (([], []), ([3], [1]), ([5, 5, 5], [0, 0, 0]), ([2] * 4, [1, 0, 1, 0])):
        found = estimate_query_noise(np.array(asked, np.int64), np.array(odd, np.int64))
        assert not found.everywhere
        assert not found.in_few


def test_in_a_small_world_memory_may_matter_to_all_questions():
    assert not estimate_query_noise(np.full(20, 19), np.full(20, 1)).everywhere


def test_a_lottery_is_not_rare_noise():
    assert not estimate_query_noise(*drawn(600, 20, 1.0, 0.5)).everywhere
