"""`strategy="search"` and `"exact"` through the whole pipeline, and what is said of proofs."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

import resolvent as rs
from protocols import BANK
from resolvent.cli import main
from resolvent.inference import refinement
from resolvent.inference.summary import trivial_lines
from resolvent.traces import NO_EVENT
from worlds import random_world, with_decoys

WORLD = random_world(1, size=9, labels=3, tm_states=4)
SCARCE = WORLD.rollouts(8, seed=1)
TRACES = WORLD.rollouts(300, seed=1)


def test_proven_machines_come_with_their_certificates():
    result = rs.infer(TRACES, strategy="exact")
    assert (result.transition.states, result.reward.states) == (4, 2)
    for name in ("transition", "reward"):
        certificate = result.certificates[name]
        assert certificate.proven
        assert certificate.states == getattr(result, name).states
        assert certificate.unique in (True, False)
    assert "proven minimal: 3 are impossible" in str(result)
    told = result.as_dict()["certificates"]
    assert told["transition"]["at_least"] == told["transition"]["states"] == 4
    assert result.machines.score(TRACES).perfect
    assert rs.infer(TRACES, strategy="edsm").certificates == {}


def test_the_search_needs_fewer_traces():
    merged, searched, proven = (
        rs.infer(SCARCE, strategy=strategy) for strategy in ("edsm", "search", "exact")
    )
    assert merged.transition.states > searched.transition.states
    assert searched.transition.states == proven.transition.states
    assert searched.machines.score(SCARCE).perfect
    assert proven.certificates["transition"].lower_bound <= proven.transition.states


def test_another_machine_of_the_same_size_is_a_machine():
    """After "b" something is asked that was never asked elsewhere: it may lead to either state."""
    traces = rs.TraceSet(
        [
            rs.Trace([0, 0], [None, None], ["x"], [0]),
            rs.Trace([0, 0, 0], [None, "a", None], ["wait", "x"], [0, 1]),
            rs.Trace([0, 0, 0], [None, "b", None], ["wait", "y"], [0, 5]),
        ]
    )
    options = {"supplement": False, "remove_redundant": False}
    certificate = rs.infer(
        traces, options=rs.InferenceOptions(strategy="exact", **options)
    ).certificates["reward"]
    assert certificate.proven
    assert certificate.unique is False
    other = certificate.alternative
    assert isinstance(other, rs.RewardMachine)
    assert other.states == certificate.states


def test_proofs_of_refined_machines_are_about_their_training_traces(monkeypatch):
    monkeypatch.setattr(refinement, "SAMPLE_STEPS", 2000)
    result = rs.infer(TRACES, strategy="exact", options=rs.InferenceOptions(refine=True))
    assert result.refinement.traces < len(TRACES)
    assert result.certificates["transition"].proven
    assert result.certificates["transition"].unique is not False
    whole = rs.infer(TRACES, strategy="exact", options=rs.InferenceOptions(refine=False))
    assert result.machines.transition == whole.machines.transition
    assert result.machines.reward == whole.machines.reward


@pytest.mark.parametrize("limit", [1e-6, 0.02])
def test_too_little_time_gives_bounds_and_no_error(limit):
    traces = random_world(0).rollouts(60, seed=1)
    result = rs.infer(traces, strategy="exact", time_limit=limit)
    certificate = result.certificates["transition"]
    assert not certificate.proven
    assert 1 <= certificate.lower_bound < certificate.states
    assert "not proven" in str(certificate)
    assert result.machines.score(traces).perfect


def test_a_search_out_of_time_returns_its_best_machine():
    traces = random_world(0).rollouts(60, seed=1)
    merged = rs.infer(traces, strategy="edsm", options=rs.InferenceOptions(trivial=[]))
    for limit in (0.3, 3, 30):  # until a slow machine has come to search
        result = rs.infer(traces, strategy="search", time_limit=limit)
        if not result.unfinished:
            break
    assert result.transition.states <= merged.transition.states
    assert result.machines.score(traces).perfect


def test_seed_and_effort_are_passed_on_and_stored():
    result = rs.infer(SCARCE, strategy="search", seed=3, options=rs.InferenceOptions(effort=0.01))
    options = result.machines.provenance.options
    assert (options["seed"], options["effort"]) == (3, 0.01)
    again = rs.infer(SCARCE, strategy="search", seed=3, options=rs.InferenceOptions(effort=0.01))
    assert again.machines == result.machines
    with pytest.raises(rs.OptionError, match="effort"):
        rs.infer(SCARCE, strategy="search", options=rs.InferenceOptions(effort=-1))
    with pytest.raises(rs.OptionError, match="seed"):
        rs.infer(SCARCE, strategy="search", seed=-1)


@pytest.mark.parametrize("strategy", ["search", "exact"])
def test_only_the_native_engine_searches(strategy):
    with pytest.raises(rs.OptionError, match=f"no strategy '{strategy}': use engine 'native'"):
        rs.infer(SCARCE, strategy=strategy, options=rs.InferenceOptions(engine="python"))


def test_strategies_that_do_not_exist():
    with pytest.raises(rs.OptionError, match=r"choose one of auto, edsm, rpni, .*search, exact"):
        rs.infer(SCARCE, strategy="guess")


@pytest.mark.parametrize("strategy", ["search", "exact"])
def test_searches_keep_labels_without_effect(strategy):
    traces = with_decoys(WORLD, 1).rollouts(150, seed=0)
    result = rs.infer(traces, strategy=strategy)
    assert trivial_lines(result) == ["assumed to change no state: no event"]
    assert result.transition.states == 4


# ---- from the command line -------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    TRACES.save(tmp_path / "traces.parquet")
    return tmp_path / "traces.parquet"


def test_the_command_prints_proofs(file, capsys):
    assert main(["infer", str(file), "--strategy", "exact"]) == 0
    out = capsys.readouterr().out
    assert "transition machine  4 states, proven minimal: 3 are impossible" in out


def test_an_unproven_machine_is_no_failure(tmp_path, capsys):
    path = tmp_path / "hard.parquet"
    random_world(0).rollouts(60, seed=1).save(path)
    assert main(["infer", str(path), "--strategy", "exact", "--time-limit", "0.01"]) == 0
    assert "not proven" in capsys.readouterr().out


def test_without_the_solver_the_extra_is_named(file, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pysat.solvers", None)
    assert main(["infer", str(file), "--strategy", "exact"]) == 2
    assert 'pip install "resolvent[exact]"' in capsys.readouterr().err


@pytest.mark.parametrize("name", ["vending", "pop3", "smtp"])
def test_a_search_finds_no_more_states_than_merging_without_labels(name):
    """The search reads all labels; merging that does so too finds more states than without some."""
    traces = BANK[name].traces(6_000, 1)
    options = {"outputs": ["output"], "noise": "none"}
    merged = rs.infer(traces, options=rs.InferenceOptions(strategy="edsm", **options))
    kept = rs.infer(
        traces, options=rs.InferenceOptions(strategy="edsm", trivial=[NO_EVENT], **options)
    )
    searched = rs.infer(
        traces, options=rs.InferenceOptions(strategy="search", effort=1e-4, **options)
    )
    assert merged.machines["output"].states < kept.machines["output"].states
    assert searched.machines["output"].states <= merged.machines["output"].states
    assert searched.machines.score(traces).perfect


def test_an_update_continues_from_unfinished_machines():
    traces = random_world(0).rollouts(120, seed=1)
    cut = rs.infer(traces[:100], strategy="edsm", time_limit=1e-6)
    assert cut.unfinished
    more = rs.infer(traces, strategy="edsm")
    assert replace(cut, options=more.options).update(traces[100:]).machines == more.machines


def test_an_unfinished_update_gives_the_best_so_far():
    traces = random_world(0).rollouts(120, seed=1)
    cut = rs.infer(traces[:100], strategy="edsm", time_limit=1e-6).update(traces[100:])
    assert cut.traces == 120
    assert cut.unfinished
