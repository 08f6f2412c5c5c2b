"""What else goes over Ray: attempts of a search, runs of a reproduction, episodes."""

import pytest

import resolvent as rs
from exact_samples import same, world_samples
from resolvent._util.ray import Ray
from resolvent.inference.engine import merge
from resolvent.inference.exact.search import minimal_automaton
from resolvent.inference.restarts import search_with_restarts
from resolvent.paper.reproduce import Settings, reproduce, settings
from resolvent.paper.run import Run
from resolvent.paper.store import Store
from resolvent.worlds import TMaze
from shuffled_workers import ShuffledWorkers

pytestmark = pytest.mark.usefixtures("ray_of_two")


@pytest.mark.slow
def test_attempts_of_an_exact_search(monkeypatch):
    monkeypatch.setattr("resolvent.inference.exact.search.ALONE", 0)
    _, samples = world_samples(0, 40, size=11, labels=4, tm_states=5)
    found, certificate = minimal_automaton(samples, merge(samples), time_limit=None, workers=Ray())
    assert str(certificate) == "5 states, proven minimal: 4 are impossible; unique"
    assert {one.where for one in certificate.effort.ran} == {"ray"}
    alone, _ = minimal_automaton(samples, merge(samples), time_limit=None)
    assert same(found, alone)


@pytest.mark.slow
def test_seeds_of_a_search():
    _, samples = world_samples(1, 25, size=11, labels=5, tm_states=7)
    found, ran = search_with_restarts(samples, Ray(), effort=0.001)
    expected, _ = search_with_restarts(samples, ShuffledWorkers(0), effort=0.001)
    assert same(found, expected)
    assert [one.where for one in ran] == ["ray"] * 4


def test_episodes():
    traces = rs.collect(lambda: TMaze(length=4), episodes=40, seed=1, on="ray")
    assert traces == rs.collect(lambda: TMaze(length=4), episodes=40, seed=1, on="threads")


class OneRun(Settings):
    def runs(self, experiment):
        if experiment == "baselines":  # a function that cannot be called like that
            yield Run("baselines", "here", "fails", 0, "builtins:dict", {"value": 1})


@pytest.mark.slow
def test_runs_of_a_reproduction(tmp_path):
    chosen = OneRun(**settings(quick=True).as_dict())
    (record,) = reproduce(Store(tmp_path, chosen.as_dict(), "it"), chosen, on=Ray()).records
    assert record["status"] == "error"
    assert record["error"].startswith("TypeError: 'Clock' object is not iterable")
    assert record["processor"]
