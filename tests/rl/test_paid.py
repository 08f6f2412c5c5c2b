"""The mean return and its interval, against exact intervals and simulated episodes."""

import math

import numpy as np
import pytest

from resolvent.rl.paid import Paid


def test_two_returns_have_the_exact_interval() -> None:
    # Clopper and Pearson: 2 of 30 successes give 0.8178% to 22.07%.
    paid = Paid.of(np.array([1.0] * 2 + [0.0] * 28))
    assert paid.low == pytest.approx(0.008178, rel=0.02)
    assert paid.high == pytest.approx(0.2207, rel=0.005)


def test_equal_returns_do_not_exclude_others_that_are_possible() -> None:
    # A return that none of n episodes had has a probability up to 1 − 0.025^(1/n).
    paid = Paid.of(np.full(50, 10.0), possible=(-100.0, 10.0))
    assert paid.low == pytest.approx(10 - 110 * (1 - 0.025 ** (1 / 50)), rel=0.01)
    assert paid.high == 10
    assert Paid.of(np.full(50, 10.0)) == Paid(10.0, 10.0, 10.0, 50)


def test_many_episodes_have_the_usual_interval() -> None:
    returns = np.random.default_rng(0).normal(size=3_000)
    paid = Paid.of(returns)
    error = 1.96 * returns.std() / math.sqrt(3_000)
    assert (paid.low, paid.high) == pytest.approx(
        (paid.mean - error, paid.mean + error), abs=0.1 * error
    )


def test_missing_rewards_widen_the_interval() -> None:
    returns = np.array([0.0, 1.0, 1.0, 0.0])
    paid = Paid.of(returns, missing=(-0.5, np.array([0.0, 0.0, 2.0, 0.0])))
    assert paid.low == pytest.approx(Paid.of(returns).low - 0.5)
    assert paid.high > Paid.of(returns).high
    endless = Paid.of(returns, missing=(0.0, math.inf))
    assert endless.as_dict() == {
        "mean": 0.5,
        "low": pytest.approx(Paid.of(returns).low),
        "high": None,
        "episodes": 4,
    }


@pytest.mark.parametrize("episodes", [30, 100, 1000])
@pytest.mark.parametrize(
    ("values", "shares"),
    [
        ((10.0, -100.0), (0.995, 0.005)),
        ((10.0, -100.0), (0.9, 0.1)),
        ((-1.0, 1.0), (0.5, 0.5)),
        ((0.0, 0.5, -20.0), (0.3, 0.69, 0.01)),
    ],
)
def test_the_interval_covers_the_true_mean(
    values: tuple[float, ...], shares: tuple[float, ...], episodes: int
) -> None:
    random, covered = np.random.default_rng(episodes), 0
    truth = float(np.dot(values, shares))
    for _ in range(200):
        returns = random.choice(values, episodes, p=shares)
        paid = Paid.of(returns, possible=(min(values), max(values)))
        covered += paid.low <= truth <= paid.high
    assert covered >= 0.93 * 200
