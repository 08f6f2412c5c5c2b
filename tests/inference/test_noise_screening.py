"""Logs of protocols look odd without memory; that is no reason to think of noise."""

import gymnasium as gym
import pytest

import resolvent as rs
from protocols import BANK
from resolvent.inference.noise_screening import lists_accidents, needs_memory, would_contradict
from resolvent.noise.model import AUTO
from resolvent.noise.outliers import score_outliers


@pytest.fixture(scope="module")
def log():
    """A log with a sink, and states that are hardly ever visited."""
    return BANK["tcp-server"].traces(5_000, 0)


@pytest.fixture(scope="module")
def exact(log):
    return rs.infer(log, outputs=["output"], noise="none")


def test_traces_of_a_protocol_are_not_compared_without_memory(log, exact):
    assert lists_accidents(exact.standing.shown)  # there is something to ask
    # Without memory some traces stand out as broken ones do: they went where few others did.
    assert score_outliers(exact.machines, log, by_state=False).are_outliers.any()
    assert needs_memory(exact.standing.shown, AUTO.broken)


def test_a_log_of_a_protocol_has_no_noise(log, exact):
    result = rs.infer(log, outputs=["output"])
    assert not result.is_noisy
    assert result.broken == ()
    theirs, ours = (one.machines.replacing(provenance=None) for one in (exact, result))
    assert ours == theirs


def test_where_memory_matters_to_few_questions_traces_are_compared_without():
    env = gym.make("resolvent/RandomWorld-v0", world_seed=3)
    found = rs.infer(rs.collect(env, episodes=50, seed=3), noise="none")
    assert not needs_memory(found.standing.shown, AUTO.broken)


def test_chance_would_have_contradicted_where_beginnings_come_again_and_again():
    log = BANK["tcp-server"].traces(50_000, 0)
    assert would_contradict(rs.infer(log, outputs=["output"], noise="none"))


def test_chance_need_not_contradict_where_no_beginning_comes_again(log):
    walks = {}
    for trace in log:
        walks.setdefault(trace.actions[0], trace)
    found = rs.infer(rs.TraceSet(walks.values()), outputs=["output"], noise="none")
    assert not would_contradict(found)
