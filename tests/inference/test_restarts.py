"""A search along several paths: the same automaton, whichever ends first."""

import pickle

import numpy as np
import pytest

from exact_samples import same, world_samples
from resolvent.inference.engine import (
    SEEDS,
    _without_names,
    search,
    search_with_restarts,
    seeds_from,
)
from resolvent.inference.fit import FOUND, STOPPED
from resolvent.preprocess.samples import ContradictoryRows
from shuffled_workers import ShuffledWorkers
from strategies import sample_set

EFFORT = 0.001


@pytest.fixture(scope="module")
def scarce():
    """So few traces that nothing is proven, and paths end in different machines."""
    return world_samples(1, 25, size=11, labels=5, tm_states=7)[1]


@pytest.fixture(scope="module")
def plenty():
    """Traces that prove the machine smallest."""
    return world_samples(0, 3000, size=11, labels=3, tm_states=4)[1]


def test_the_smallest_of_all_searches_wins_in_any_order(scarce):
    alone = [search(scarce, seed=seed, effort=EFFORT) for seed in seeds_from(3)]
    best = min(alone, key=lambda one: one.states)
    for order in range(3):
        found, attempts = search_with_restarts(
            scarce, ShuffledWorkers(order), seed=3, effort=EFFORT
        )
        assert same(found, best)
        assert [attempt.outcome for attempt in attempts] == [FOUND] * SEEDS


def test_a_proof_stops_those_after_it_and_waits_for_those_before(plenty, monkeypatch):
    monkeypatch.setattr("resolvent.inference.engine.EASY", 0.0)
    monkeypatch.setattr(
        "resolvent.inference.engine._is_smallest", lambda samples, found: samples is not plenty
    )
    alone, stopped = search(plenty, seed=3), 0
    for order in range(6):
        found, attempts = search_with_restarts(plenty, ShuffledWorkers(order), seed=3)
        assert same(found, alone)
        assert attempts[0].outcome == FOUND
        stopped += sum(attempt.outcome == STOPPED for attempt in attempts)
    assert stopped


def test_easy_samples_use_no_workers(plenty):
    workers = ShuffledWorkers(0)
    workers.map_until = None  # must not be called
    found, attempts = search_with_restarts(plenty, workers, seed=3)
    assert same(found, search(plenty, seed=3))
    assert attempts == []


def test_samples_are_sent_without_derived_data(scarce):
    again = pickle.loads(pickle.dumps(_without_names(scarce)))  # noqa: S301
    assert same(search(again, seed=1, effort=EFFORT), search(scarce, seed=1, effort=EFFORT))
    assert len(pickle.dumps(_without_names(scarce))) < 13 * len(scarce.alpha) + 10_000


def test_seeds_are_the_users_own_and_others():
    assert seeds_from(0)[0] == 0
    assert len({number for seed in range(50) for number in seeds_from(seed)[1:]}) == 50 * (
        SEEDS - 1
    )
    assert all(0 <= number < 2**64 for number in seeds_from(2**64 - 1))


def test_contradictions_are_refused():
    with pytest.raises(ContradictoryRows):
        search_with_restarts(sample_set([[(-1, 0, 0)], [(-1, 0, 1)]]), ShuffledWorkers(0))


def test_a_known_machine_bounds_the_result(plenty):
    known = np.full((4, len(plenty.labels)), -1, np.int32)
    found = search(plenty, seed=0)
    known[found.transition_state, found.transition_label] = found.transition_target
    again, _ = search_with_restarts(plenty, ShuffledWorkers(0), known=known)
    assert again.states == 4
