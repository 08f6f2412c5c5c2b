"""Rewards that vary are taken for the values that they vary around."""

import numpy as np
import pytest

import resolvent as rs
from resolvent.machines.io.schema import senses_in, stored_senses
from resolvent.preprocess.reward_levels import RewardLevels
from resolvent.preprocess.transform import Preprocessor
from resolvent.traces import Trace, TraceSet

LEVELS = RewardLevels((-1.0, 0.0, 0.5), 0.2, exact=(7.0,))


def paying(*rewards):
    seen = [0] * (len(rewards) + 1)
    return TraceSet([Trace(seen, [None] * len(seen), ["go"] * len(rewards), rewards)])


def test_each_reward_becomes_the_nearest_centre_unless_it_is_exact():
    assert LEVELS.of([-9, -0.51, -0.49, 0.24, 0.26, 7, 7.001]).tolist() == [
        *(-1.0, -1.0, 0.0, 0.0, 0.5, 7.0, 0.5)
    ]


def test_to_see_traces_twice_changes_nothing():
    once = LEVELS.on(paying(0.1, -0.8, 0.45, 7.0))
    assert once[0].rewards == (0.0, -1.0, 0.5, 7.0)
    assert LEVELS.on(once) is once
    senses = Preprocessor(rewards=LEVELS)
    assert not senses.are_plain
    assert senses.on(once) is once


def test_traces_without_rewards_stay_as_they_are():
    log = TraceSet([Trace([0, 0], [None, None], ["go"], columns={"cost": [3]})])
    assert LEVELS.on(log) is log


def test_a_file_holds_them():
    senses = Preprocessor(rewards=LEVELS)
    assert senses_in(stored_senses(senses)) == senses


@pytest.mark.parametrize(
    "fields",
    [
        {"centres": [0.0]},
        {"centres": [], "sigma": 1.0},
        {"centres": [1.0, 0.0], "sigma": 1.0},
        {"centres": [0.0, float("nan")], "sigma": 1.0},
        {"centres": "ab", "sigma": 1.0},
        {"centres": 3, "sigma": 1.0},
        {"centres": [0.0], "sigma": 0.0},
        {"centres": [0.0], "sigma": True},
        {"centres": [0.0], "sigma": 1.0, "more": 1},
    ],
)
def test_damaged_levels_are_refused(fields):
    with pytest.raises(rs.errors.ModelError):
        RewardLevels.from_dict(fields)


def test_probabilities_of_wrong_levels_match_simulated_rewards():
    random = np.random.default_rng(0)
    values = [*LEVELS.centres, 7.0]
    mistaken = LEVELS.mistaken(values)
    assert mistaken.sum(1) == pytest.approx(1)
    for row, centre in enumerate(LEVELS.centres):
        taken = LEVELS.of(random.normal(centre, LEVELS.sigma, 100_000))
        assert [(taken == one).mean() for one in values] == pytest.approx(mistaken[row], abs=0.006)
    assert mistaken[3].tolist() == [0, 0, 0, 1]


def test_the_text_lists_a_few_of_many_levels():
    assert str(RewardLevels(tuple(range(12)), 0.1)).endswith("5, 6, 7, 4 more")
