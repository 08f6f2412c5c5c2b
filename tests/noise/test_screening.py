"""Cheap tests of noise: chance is homogeneous, missing memory localized; protocols are neither."""

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from protocols import BANK
from resolvent.inference.noise_fits import may_overfit, would_contradict
from resolvent.noise.model import AUTO
from resolvent.noise.outliers import score_outliers
from resolvent.noise.screening import estimate_query_noise, query_noise


def drawn(queries, most, share, rate, seed=0):
    random = np.random.default_rng(seed)
    times = random.integers(1, most, queries)
    deviating = random.binomial(times, np.where(np.arange(queries) < share * queries, rate, 0.0))
    return times, deviating


@pytest.mark.parametrize("rate", [0.03, 0.1, 0.25])
def test_chance_is_homogeneous(rate):
    noise = estimate_query_noise(*drawn(600, 20, 1.0, rate))
    assert noise.is_homogeneous
    assert not noise.is_localized
    assert noise.share > 0.8
    assert noise.rate == pytest.approx(rate, rel=0.3)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_missing_memory_is_localized(rate):
    noise = estimate_query_noise(*drawn(600, 20, 0.15, rate))
    assert noise.is_localized
    assert not noise.is_homogeneous
    assert noise.share == pytest.approx(0.15, abs=0.06)


def test_few_outputs_prove_nothing():
    for most, deviating in (([], []), ([3], [1]), ([5, 5, 5], [0, 0, 0]), ([2] * 4, [1, 0, 1, 0])):
        noise = estimate_query_noise(np.array(most, np.int64), np.array(deviating, np.int64))
        assert not noise.is_homogeneous
        assert not noise.is_localized


def test_in_a_small_world_memory_may_matter_to_all_queries():
    assert not estimate_query_noise(np.full(20, 19), np.full(20, 1)).is_homogeneous


def test_a_lottery_is_not_rare_noise():
    assert not estimate_query_noise(*drawn(600, 20, 1.0, 0.5)).is_homogeneous


@pytest.fixture(scope="module")
def log():
    """A log with a sink, and states that are hardly ever visited."""
    return BANK["tcp-server"].traces(5_000, 0)


@pytest.fixture(scope="module")
def exact(log):
    return rs.infer(log, outputs=["output"], noise="none")


@pytest.mark.slow
def test_traces_of_a_protocol_are_not_compared_without_memory(log, exact):
    assert may_overfit(exact.inference_state.counts)  # there is something to ask
    # Without memory some traces stand out as broken ones do: they went where few others did.
    assert score_outliers(exact.machines, log, by_state=False).are_outliers.any()
    assert query_noise(exact.inference_state.counts, by_state=False).may_need_memory(AUTO.outliers)


@pytest.mark.slow
def test_a_log_of_a_protocol_has_no_noise(log, exact):
    result = rs.infer(log, outputs=["output"])
    assert not result.is_noisy
    assert result.outliers == ()
    theirs, ours = (inferred.machines.replacing(provenance=None) for inferred in (exact, result))
    assert ours == theirs


def test_if_memory_matters_to_few_queries_traces_are_compared_without():
    env = gym.make("resolvent/RandomWorld-v0", world_seed=3)
    result = rs.infer(rs.collect(env, episodes=50, seed=3), noise="none")
    noise = query_noise(result.inference_state.counts, by_state=False)
    assert not noise.may_need_memory(AUTO.outliers)


@pytest.mark.slow
def test_chance_would_contradict_in_repeated_histories():
    log = BANK["tcp-server"].traces(50_000, 0)
    assert would_contradict(rs.infer(log, outputs=["output"], noise="none"))


@pytest.mark.slow
def test_chance_need_not_contradict_without_repeated_histories(log):
    walks = {}
    for trace in log:
        walks.setdefault(trace.actions[0], trace)
    result = rs.infer(rs.TraceSet(walks.values()), outputs=["output"], noise="none")
    assert not would_contradict(result)
