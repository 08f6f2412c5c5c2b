from typing import Any

import pytest
from cli_outcome import Run

import resolvent as rs
from resolvent import _core
from resolvent.cli.commands import doctor as installation
from resolvent.inference import infer as pipeline


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
    assert found["core"] == _core.BUILD
    assert {one["name"] for one in found["dependencies"]} >= {"numpy", "msgspec"}
    assert sorted(found["extras"]) == sorted(installation.EXTRAS)
    assert found["faults"] == []


@pytest.mark.parametrize(
    ("missing", "code", "message"),
    [
        ("matplotlib", 0, 'to add one: pip install "resolvent[figures]"\n'),
        ("pyarrow", 1, "\nfault: pyarrow: not installed\n"),
    ],
)
def test_a_missing_extra_is_no_fault_and_a_missing_dependency_is(
    run: Run, monkeypatch: pytest.MonkeyPatch, missing: str, code: int, message: str
) -> None:
    there = installation._installed
    monkeypatch.setattr(
        installation, "_installed", lambda name: None if name == missing else there(name)
    )
    outcome = run("doctor")
    assert outcome.code == code
    assert message in outcome.out
    assert ("all that is installed works" in outcome.out) == (code == 0)


def test_engines_that_disagree(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    original = pipeline.infer

    def infer(traces: rs.TraceSet, *, options: rs.InferenceOptions) -> rs.InferenceResult:
        return original(traces if options.engine == "native" else traces[:1])

    monkeypatch.setattr(pipeline, "infer", infer)
    outcome = run("doctor", "--json")
    assert outcome.code == 1
    assert outcome.json["faults"] == [
        "trial run failed: ResolventError: the engines found different machines in the house"
    ]


def test_a_cluster_that_does_not_answer_is_a_fault(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resolvent.cli.commands.doctor._trial", lambda: "left out")
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    outcome = run("doctor")
    assert outcome.code == 1
    assert "\nRay cluster: not reached: no Ray cluster responds at 127.0.0.1:1 (" in outcome.out
    assert "\nfault: no Ray cluster responds at 127.0.0.1:1 (" in outcome.out
    found = run("doctor", "--on", "ray:127.0.0.1:2", "--json").json
    assert "127.0.0.1:2" in found["cluster"]
    assert "is no Ray cluster" in run("doctor", "--on", "threads", "--json").json["faults"][0]


def test_a_cluster_that_is_reached(
    run: Run, monkeypatch: pytest.MonkeyPatch, ray_of_two: Any
) -> None:
    monkeypatch.setattr("resolvent.cli.commands.doctor._trial", lambda: "left out")
    outcome = run("doctor", "--on", "ray")
    assert outcome.code == 0
    message = f"\nRay cluster: Ray {ray_of_two.__version__}, 1 node with 2 processors\n"
    assert message in outcome.out
