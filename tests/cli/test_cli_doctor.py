import pytest
from cli_outcome import Run

import resolvent as rs
from resolvent import installation, pipeline


def test_all_is_well(run: Run) -> None:
    outcome = run("doctor")
    assert (outcome.code, outcome.err) == (0, "")
    assert rs.__version__ in outcome.out
    assert "-ffp-contract=off" in outcome.out
    for name in installation.EXTRAS:
        assert f"\n{name} " in outcome.out
    assert "found the same machines in the house, 2 and 2 states" in outcome.out
    assert outcome.out.endswith("all that is installed works\n")


def test_as_json(run: Run) -> None:
    found = run("doctor", "--json").json
    assert found["system"]["resolvent"] == rs.__version__
    assert found["core"] == installation.core()
    assert {one["name"] for one in found["dependencies"]} >= {"numpy", "msgspec"}
    assert sorted(found["extras"]) == sorted(installation.EXTRAS)
    assert found["faults"] == []


def test_an_extra_that_is_missing_is_no_fault(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    there = installation._installed
    monkeypatch.setattr(
        installation, "_installed", lambda name: None if name == "matplotlib" else there(name)
    )
    outcome = run("doctor")
    assert outcome.code == 0
    assert 'pip install "resolvent[figures]"' in outcome.out


def test_a_dependency_that_is_missing_is_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    there = installation._installed
    monkeypatch.setattr(
        installation, "_installed", lambda name: None if name == "pyarrow" else there(name)
    )
    outcome = run("doctor")
    assert outcome.code == 1
    assert outcome.out.endswith("\nfault: pyarrow: not installed\n")


def test_engines_that_disagree(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def infer(traces: rs.TraceSet, *, engine: str) -> rs.InferenceResult:
        return rs.infer(traces if engine == "native" else traces[:1])

    monkeypatch.setattr(pipeline, "infer", infer)
    outcome = run("doctor", "--json")
    assert outcome.code == 1
    assert outcome.json["faults"] == [
        "trial run failed: ResolventError: the engines found different machines in the house"
    ]
