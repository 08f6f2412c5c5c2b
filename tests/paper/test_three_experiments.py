"""Each experiment's own run, small and in this process."""

import numpy as np
import pytest

import resolvent as rs
from resolvent.paper.experiments.ablation import ablate
from resolvent.paper.experiments.comparison import compare
from resolvent.paper.experiments.methods import METHODS
from resolvent.paper.experiments.policy import learn
from resolvent.paper.processes import Clock
from resolvent.worlds import PhaseGrid, RandomWorld


@pytest.mark.parametrize(("method", "verdict"), [("truth", "exact"), ("forgetful", "wrong")])
def test_what_a_method_finds_is_compared_with_the_truth(method, verdict):
    record = compare(
        Clock(10), world="grid-3", traces=20, seed=3, function=f"fake_methods:{method}", options={}
    )
    seen = rs.collect(PhaseGrid(3), episodes=20, seed=3)
    assert record["verdict"] == verdict
    assert (record["traces"], record["steps"]) == (20, seen.steps)
    assert record["traces_sha256"] == seen.digest_in_sequence


@pytest.mark.parametrize("name", ["rpni", "edsm", "hmm", "lrm-published"])
def test_methods_are_called_as_they_want_to_be(name):
    method = METHODS[name]
    record = compare(
        Clock(30),
        world="grid-3",
        traces=275,
        seed=0,
        function=method.function,
        options=method.options,
    )
    assert record["status"] == "found"
    assert record["verdict"] == ("wrong" if name == "lrm-published" else "exact")


@pytest.mark.parametrize(("name", "needs"), [("ilp-conflicts", "highspy"), ("aalpy", "aalpy")])
def test_so_are_those_that_need_a_package(name, needs):
    pytest.importorskip(needs)
    test_methods_are_called_as_they_want_to_be(name)


def test_a_part_that_is_switched_off_is_off():
    common = {"world": "random-28", "traces": 300, "seed": 0, "strategy": "edsm"}
    full, kept = (ablate(Clock(30), part=part, **common) for part in ("full", "keep-trivial"))
    nodes = [one["details"]["prefix_tree_nodes"]["transition"] for one in (full, kept)]
    assert nodes[0] < nodes[1]
    assert full["tm_states"] >= 1
    assert full["traces_sha256"] == kept["traces_sha256"]


def test_learning_says_what_was_paid_and_what_it_is_worth():
    record = learn(Clock(60), world="random-28", learner="machines", seed=0, episodes=200)
    tables = RandomWorld(28).mechanics
    best = tables.optimal_values(0.95)[tables.starts].mean()
    assert record["optimum"] == pytest.approx(best, abs=1e-5)
    assert record["most"] > record["optimum"]
    assert record["worth"]["episode"] == [50, 100, 150, 200]
    assert max(record["worth"]["value"]) <= record["optimum"]
    assert len(record["returns"]) == 200 // 25
    assert np.max(record["returns"]) <= record["most"] + 1e-9
