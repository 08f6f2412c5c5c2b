import pickle
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvent.machines.score import PredictionSums


def forecasts(*rows):
    """Sum up rows: chance of what came, chance of the main answer, whether that came, how often."""
    came, main, right, count = zip(*rows, strict=True)
    return PredictionSums.of(np.array(came), np.array(main), np.array(right), np.array(count))


def test_losses_and_bins_by_hand():
    sums = forecasts((0.9, 0.9, True, 8), (0.1, 0.9, False, 2), (0.5, 0.5, True, 1))
    assert sums.steps == 11
    assert sums.log_loss == pytest.approx(-(8 * log(0.9) + 2 * log(0.1) + log(0.5)) / 11)
    half, sure = sums.calibration
    assert half == (0.5, 0.55, 0.5, 1.0, 1)
    assert (sure.lower, sure.upper, sure.right, sure.steps) == (0.9, 0.95, 0.8, 10)
    assert sure.predicted == pytest.approx(0.9)


def test_a_chance_of_one_is_in_the_last_bin():
    (row,) = forecasts((1.0, 1.0, True, 3)).calibration
    assert row == (0.95, 1.0, 1.0, 1.0, 3)


def test_nothing_was_forecast():
    assert PredictionSums().log_loss is None
    assert PredictionSums().calibration == ()
    assert PredictionSums().plus(PredictionSums()) == PredictionSums()


def test_many_steps_do_not_overflow():
    many = 2**42
    sums = forecasts((1e-12, 1e-12, True, many), (1e-12, 1e-12, True, many))
    assert sums.log_loss == pytest.approx(-log(1e-12))
    assert sums.calibration[0].predicted == pytest.approx(1e-12, abs=1e-9)


chance = st.floats(1e-9, 1)
steps = st.lists(st.tuples(chance, chance, st.booleans(), st.integers(1, 10**6)), min_size=1)


@given(steps, steps, st.randoms(use_true_random=False))
def test_shards_add_up_in_any_order(first, second, random):
    both = [*first, *second]
    random.shuffle(both)
    together = forecasts(*both)
    assert forecasts(*first).plus(forecasts(*second)) == together
    assert forecasts(*second).plus(forecasts(*first)) == together
    assert hash(forecasts(*first).plus(forecasts(*second))) == hash(together)
    assert pickle.loads(pickle.dumps(together)) == together  # noqa: S301
    assert sum(row.steps for row in together.calibration) == sum(row[3] for row in both)
