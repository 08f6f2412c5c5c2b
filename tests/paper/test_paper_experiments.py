"""Each experiment's own run, small and in this process."""

import fake_methods
import numpy as np
import pytest

import resolvent as rs
from resolvent.paper.experiments import METHODS, Method, ablate, compare, learn, run_ours
from resolvent.paper.runs import Stopwatch
from resolvent.worlds import PhaseGrid, RandomWorld
from worlds import random_world


@pytest.mark.parametrize(("method", "correctness"), [("truth", "exact"), ("forgetful", "wrong")])
def test_results_are_compared_with_the_truth(method, correctness, monkeypatch):
    monkeypatch.setitem(METHODS, "fake", Method("fake", getattr(fake_methods, method), {}))
    record = compare(Stopwatch(10), world="grid-3", traces=20, seed=3, method="fake")
    seen = rs.collect(PhaseGrid(3), episodes=20, seed=3)
    assert record["correctness"] == correctness
    assert (record["traces"], record["steps"]) == (20, seen.steps)
    assert record["traces_sha256"] == seen.digest


@pytest.mark.parametrize("name", ["rpni", "edsm", "hmm", "lrm-published"])
def test_methods_get_their_options(name):
    record = compare(Stopwatch(30), world="grid-3", traces=275, seed=0, method=name)
    assert record["status"] == "found"
    assert record["correctness"] == ("wrong" if name == "lrm-published" else "exact")


@pytest.mark.parametrize(("name", "needs"), [("ilp-conflicts", "highspy"), ("aalpy", "aalpy")])
def test_methods_that_need_a_package_get_their_options(name, needs):
    pytest.importorskip(needs)
    test_methods_get_their_options(name)


def test_a_part_that_is_switched_off_is_off():
    common = {"world": "random-28", "traces": 300, "seed": 0, "strategy": "edsm"}
    full, kept = (ablate(Stopwatch(30), part=part, **common) for part in ("full", "keep-trivial"))
    nodes = [one["details"]["prefix_tree_nodes"]["transition"] for one in (full, kept)]
    assert nodes[0] < nodes[1]
    assert full["tm_states"] >= 1
    assert full["traces_sha256"] == kept["traces_sha256"]


def test_learning_records_returns_and_values():
    record = learn(Stopwatch(60), world="random-28", learner="machines", seed=0, episodes=200)
    tables = RandomWorld(28).mechanics
    best = tables.optimal_values(0.95)[tables.starts].mean()
    assert record["optimum"] == pytest.approx(best, abs=1e-5)
    assert record["largest_return"] > record["optimum"]
    assert record["policy"]["episode"] == [50, 100, 150, 200]
    assert max(record["policy"]["value"]) <= record["optimum"]
    assert len(record["returns"]) == 200 // 25
    assert np.max(record["returns"]) <= record["largest_return"] + 1e-9


@pytest.mark.parametrize(("limit", "status"), [(1e-6, "time limit"), (60.0, "found")])
def test_an_unfinished_machine_has_the_status_time_limit(limit, status):
    traces = random_world(0).rollouts(50, seed=1)
    assert run_ours(traces, seed=0, time_limit=limit, strategy="edsm").status == status
