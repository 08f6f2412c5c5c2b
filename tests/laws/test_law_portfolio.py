"""What strategies find side by side does not depend on which attempt is first."""

import pytest

import resolvent as rs
from shuffled_workers import ShuffledWorkers
from worlds import random_world


@pytest.fixture
def only_workers(monkeypatch):
    """Have workers do all that they can."""
    monkeypatch.setattr("resolvent.inference.exact_search.ALONE", 0)
    monkeypatch.setattr("resolvent.inference.engine._is_smallest", lambda samples, found: False)


@pytest.mark.parametrize("strategy", ["search", "exact"])
def test_results_are_the_same_in_any_order(tmp_path, only_workers, strategy):
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
    # The same states as without workers, and the attempts name their workers.
    alone = rs.infer(traces, options=rs.InferenceOptions(**how))
    assert results[0].as_dict()["states"] == alone.as_dict()["states"]
    assert [attempt.workers for attempt in alone.tried["transition"]] == [None]
    first, second, *_ = results[0].tried["transition"]
    assert (first.name, first.outcome, first.workers) == (strategy, "chosen", None)
    assert (second.name, second.workers) == ("search, seed 0", "shuffled")
    line = "tried               transition machine, shuffled: search, seed 0: "
    assert line in str(results[0])
