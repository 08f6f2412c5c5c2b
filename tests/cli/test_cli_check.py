from math import log
from pathlib import Path

import numpy as np
import pytest
from cli_outcome import Run

import resolvent as rs
from noisy_worlds import noisy_house, two_moods
from resolvent.machines.likelihood import _noise_bin, smoothing_of


@pytest.fixture
def fresh(run: Run, tmp_path: Path) -> Path:
    path = tmp_path / "fresh.parquet"
    assert run("collect", "resolvent/House-v0", "-n", "50", "--seed", "1", "-o", path).code == 0
    return path


@pytest.fixture
def unlocked(tmp_path: Path) -> Path:
    """A house whose cyanroom opens without the key: its second step is predicted wrongly."""
    path = tmp_path / "unlocked.jsonl"
    path.write_text(
        '{"observations":["corridor","corridor","cyanroom"],"labels":[[],[],["toilet"]],'
        '"actions":["down","up"],"rewards":[0,0]}\n'
    )
    return path


def test_all_right(run: Run, machines: Path, fresh: Path) -> None:
    outcome = run("check", machines, fresh)
    assert (outcome.code, outcome.err) == (0, "")
    assert "every step is predicted, and right" in outcome.out
    assert "log" not in outcome.out  # which tells something only where answers vary


def test_json_all_right(run: Run, machines: Path, fresh: Path) -> None:
    outcome = run("check", machines, fresh, "--json")
    assert outcome.code == 0
    for name in ("transition", "reward"):
        figures = outcome.json[name]
        assert 0 < figures.pop("log_loss") < 0.02
        assert figures == {
            "right": outcome.json["steps"],
            "wrong": 0,
            "assumed_right": 0,
            "assumed_wrong": 0,
            "unseen": 0,
            "first_mismatch": None,
        }


def test_a_wrong_prediction_is_named_and_gives_exit_code_1(
    run: Run, machines: Path, unlocked: Path
) -> None:
    outcome = run("check", machines, unlocked)
    assert (outcome.code, outcome.err) == (1, "")
    assert "transition machine, trace 0, step 1" in outcome.out
    assert "predicts 'corridor'" in outcome.out


def test_json_of_a_wrong_prediction(run: Run, machines: Path, unlocked: Path) -> None:
    outcome = run("check", machines, unlocked, "--json")
    assert (outcome.code, outcome.err) == (1, "")
    # Only "up" depends on the state; noise is shared by three other rooms.
    machine = rs.load(machines).transition
    down = sum(machine.counts(state, "corridor", "down")["corridor"] for state in (0, 1))
    up = machine.counts(0, "corridor", "up")["corridor"]
    few = smoothing_of(machine)
    noises = np.array(few.noise)[_noise_bin(np.array([down, up]))]
    right = (down + few.strength * (1 - noises[0])) / (down + few.strength)
    wrong = few.strength * noises[1] / 3 / (up + few.strength)
    loss = -(log(right) + log(wrong)) / 2 - log(1 - few.novelty)
    figures = outcome.json["transition"]
    assert figures.pop("log_loss") == pytest.approx(loss)
    assert figures == {
        "right": 1,
        "wrong": 1,
        "assumed_right": 0,
        "assumed_wrong": 0,
        "unseen": 0,
        "first_mismatch": {
            "machine": "transition",
            "trace": 0,
            "step": 1,
            "observation": "corridor",
            "action": "up",
            "state": 0,
            "predicted": "corridor",
            "actual": "cyanroom",
            "generalized": False,
        },
    }


def test_traces_of_another_world_are_said_to_be(run: Run, machines: Path, tmp_path: Path) -> None:
    path = tmp_path / "attic.jsonl"
    path.write_text(
        '{"observations":["attic","attic"],"labels":[[],[]],"actions":["up"],"rewards":[0]}\n'
    )
    outcome = run("check", machines, path)
    assert outcome.code == 1
    assert (
        "no step is predicted by the Transition Machine and Reward Machine: are these traces of "
        "the same environment?"
    ) in outcome.out
    assert "every step" not in outcome.out
    second = run("check", machines, path, "--json")
    assert (second.code, second.json["transition"]["unseen"]) == (1, 1)


def test_a_step_that_was_never_shown_is_no_fault(run: Run, machines: Path, tmp_path: Path) -> None:
    path = tmp_path / "attic.jsonl"
    path.write_text(
        '{"observations":["corridor","corridor","attic"],"labels":[[],[],[]],'
        '"actions":["down","fly"],"rewards":[0,0]}\n'
    )
    outcome = run("check", machines, path)
    assert outcome.code == 0
    assert "1 step without a prediction: infer from more traces" in outcome.out


def test_arguments_the_wrong_way_round(run: Run, machines: Path, house: Path) -> None:
    outcome = run("check", house, machines)
    assert outcome.code == 2
    assert "house.jsonl" in outcome.error


def test_evidence_from_the_traces_they_were_inferred_from(
    run: Run, machines: Path, house: Path
) -> None:
    outcome = run("check", machines, house, "--evidence")
    assert (outcome.code, outcome.err) == (0, "")
    assert "transition machine: 2 states" in outcome.out
    assert "transition coverage: never read: toilet in state 0" in outcome.out
    assert "next: read toilet; then in 'corridor' do 'up'" in outcome.out
    assert "of 39 held-out traces fail" in outcome.out


def test_evidence_from_new_traces(run: Run, machines: Path, fresh: Path) -> None:
    outcome = run("check", machines, fresh, "--evidence", "--json")
    assert outcome.code == 0
    figures = outcome.json["evidence"]
    assert figures["holdout"]["new_traces"] is True
    assert (figures["holdout"]["traces"], figures["holdout"]["failures"]) == (50, 0)
    (apart,) = figures["transition"]["separations"]
    assert (apart["states"], apart["suffix"], apart["queries"]) == ([0, 1], [], 1)
    assert apart["outputs"][0]["query"] == {
        "observation": "corridor",
        "action": "up",
        "transition_state": None,
    }
    assert figures["transition"]["completeness"]["unseen_transitions"] == [
        {"state": 0, "label": ["toilet"]}
    ]
    assert "evidence" in outcome.json["seconds"]
    assert "evidence" not in run("check", machines, fresh, "--json").json


def test_evidence_of_another_world_is_one_line(run: Run, machines: Path, tmp_path: Path) -> None:
    path = tmp_path / "attic.jsonl"
    path.write_text(
        '{"observations":["attic","attic"],"labels":[[],[]],"actions":["up"],"rewards":[0]}\n'
    )
    outcome = run("check", machines, path, "--evidence")
    assert outcome.code == 2
    assert "inferred from another environment" in outcome.error


def test_options_that_cannot_be_used_again_are_one_line(
    run: Run, machines: Path, house: Path, tmp_path: Path
) -> None:
    path = tmp_path / "strange.json"
    text = machines.read_text()
    assert '"strategy": "auto"' in text
    path.write_text(text.replace('"strategy": "auto"', '"strategy": ["edsm"]'))
    outcome = run("check", path, house, "--evidence")
    assert outcome.code == 2
    assert "options unknown here" in outcome.error


def test_machines_of_a_noisy_world(run: Run, tmp_path: Path) -> None:
    machines, traces = noisy_house()
    machines.save(tmp_path / "noisy.json")
    traces.save(tmp_path / "noisy.parquet")
    outcome = run("check", tmp_path / "noisy.json", tmp_path / "noisy.parquet")
    score = machines.score(traces)
    rows = [line.split() for line in outcome.out.splitlines()]
    for name in ("Transition", "Reward"):
        loss = f"{score[name.lower()].log_loss:.3f}"
        assert [row[-1] for row in rows if row[:1] == [name]] == [loss]
    figures = run("check", tmp_path / "noisy.json", tmp_path / "noisy.parquet", "--json").json
    assert figures["transition"]["log_loss"] == score.transition.log_loss
    assert figures["transition"]["wrong"] == score.transition.wrong > 0


def test_machines_whose_states_are_inferred(run: Run, tmp_path: Path) -> None:
    traces = two_moods(300)
    rs.infer(traces).machines.save(tmp_path / "moods.json")
    traces.save(tmp_path / "moods.parquet")
    assert run("check", tmp_path / "moods.json", tmp_path / "moods.parquet").code == 0
    other = rs.TraceSet(
        rs.Trace(one.observations, one.labels, one.actions, [1 - paid for paid in one.rewards])
        for one in traces
    )
    other.save(tmp_path / "others.parquet")
    assert run("check", tmp_path / "moods.json", tmp_path / "others.parquet").code == 1
