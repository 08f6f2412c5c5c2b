"""What strategies find side by side does not depend on which attempt is first."""

import pytest

import resolvent as rs
from shuffled_workers import ShuffledWorkers
from worlds import random_world


@pytest.fixture
def nothing_alone(monkeypatch):
    """Have workers do all that they can."""
    monkeypatch.setattr("resolvent.inference.exact.search.ALONE", 0)
    monkeypatch.setattr("resolvent.inference.restarts._is_smallest", lambda samples, found: False)


@pytest.mark.parametrize("strategy", ["search", "exact"])
def test_results_are_the_same_in_any_order(tmp_path, nothing_alone, strategy):
    traces = random_world(4, size=9, labels=3, tm_states=3).rollouts(60, 0)
    how = {"strategy": strategy, "effort": 0.002, "noise": "none"}
    results = [
        rs.infer(traces, options=rs.InferenceOptions(on=ShuffledWorkers(order), **how))
        for order in range(3)
    ]
    files = set()
    for number, result in enumerate(results):
        result.machines.save(tmp_path / f"{number}.json")
        files.add((tmp_path / f"{number}.json").read_bytes())
        assert result.certificates == results[0].certificates
        assert result.statistics == results[0].statistics
    assert len(files) == 1
    # The same states as without workers, and it is said what was tried where.
    alone = rs.infer(traces, options=rs.InferenceOptions(**how))
    assert results[0].as_dict()["states"] == alone.as_dict()["states"]
    assert (alone.ran_text(), alone.as_dict()["side_by_side"]) == ([], {})
    assert results[0].ran_text()[0].startswith("transition machine, shuffled: search, seed 0: ")
    told = results[0].as_dict()["side_by_side"]["transition"]
    assert told[0].keys() == {"what", "where", "outcome", "seconds"}
    assert "side by side" in str(results[0])
