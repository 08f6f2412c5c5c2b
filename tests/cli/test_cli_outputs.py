"""Machines for other columns than the paper's two, from the command line.

The world is a room with a lamp. To look pays 0 and costs 1; once the lamp is on, it pays 1 and
costs 2. To wait pays 0 and costs 3, and nobody waits once the lamp is on: that output is generalized.
"""

import json
from pathlib import Path

import pytest
from cli_outcome import Run

import resolvent as rs

DARK = {"labels": [[], []], "actions": ["look"], "rewards": [0], "cost": [1]}
LIT = {
    "labels": [[], ["on"], []],
    "actions": ["wait", "look"],
    "rewards": [0, 1],
    "cost": [3, 2],
}
LIT_WAIT = {**LIT, "actions": ["wait", "wait"], "rewards": [0, 0], "cost": [3, 3]}


def written(path: Path, *traces: dict[str, list[object]], without: str = "") -> Path:
    """Write traces as JSON lines, all of them in the one room, perhaps without one of the keys."""
    rows = (
        {"observations": ["room"] * len(trace["labels"]), **trace, "terminated": False}
        for trace in traces
    )
    path.write_text(
        "".join(
            json.dumps({name: row[name] for name in row if name != without}) + "\n" for row in rows
        )
    )
    return path


@pytest.fixture
def lamp(tmp_path: Path) -> Path:
    return written(tmp_path / "lamp.jsonl", DARK, LIT)


@pytest.fixture
def three(run: Run, lamp: Path) -> Path:
    """The file of the lamp's three machines."""
    path = lamp.with_name("three.json")
    assert run("infer", lamp, "--outputs", "observation,reward,cost", "-o", path).code == 0
    return path


def test_infer_names_the_states_of_each(run: Run, lamp: Path) -> None:
    outcome = run("infer", lamp, "--outputs", "cost, observation,reward", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.json["states"] == {"transition": 1, "reward": 2, "cost": 2}
    assert set(outcome.json["seconds"]) == {
        *("read", "transition", "reward", "cost", "replay", "held_out", "total")
    }
    assert outcome.json["options"]["outputs"] == ["cost", "observation", "reward"]


def test_the_summary_has_a_row_for_each(run: Run, lamp: Path) -> None:
    outcome = run("infer", lamp, "--outputs", "observation,reward,cost")
    rows = [line.split()[:3] for line in outcome.out.splitlines() if " Machine " in line]
    assert rows == [
        ["Transition", "Machine", "1"],
        ["Reward", "Machine", "2"],
        ["Cost", "Machine", "2"],
    ]


def test_one_machine_alone(run: Run, lamp: Path) -> None:
    figures = run("infer", lamp, "--outputs", "cost", "--json").json
    assert figures["states"] == {"cost": 2}
    assert "tm_states" not in figures
    assert "rm_states" not in figures


def test_traces_without_rewards_have_no_reward_machine(run: Run, tmp_path: Path) -> None:
    path = written(tmp_path / "bare.jsonl", DARK, LIT, without="rewards")
    assert run("infer", path, "--json").json["states"] == {"transition": 1}
    assert "the traces have no rewards, so there is no Reward Machine" in run("infer", path).out


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ("cots", ["cots"]),
        ("reward,,cost", ["--outputs", "empty name"]),
        ("", ["--outputs", "empty name"]),
        ("reward,reward", ["'reward' twice"]),
        ("step", ["`step`", "another name"]),
    ],
)
def test_outputs_that_cannot_be_had(run: Run, lamp: Path, outputs: str, words: list[str]) -> None:
    outcome = run("infer", lamp, "--outputs", outputs)
    assert outcome.code == 2
    assert all(word in outcome.error for word in words), outcome.err


def test_an_output_that_a_parquet_file_does_not_have(run: Run, lamp: Path, tmp_path: Path) -> None:
    path = tmp_path / "lamp.parquet"
    assert run("convert", lamp, path).code == 0
    outcome = run("infer", path, "--outputs", "cost")
    assert outcome.code == 2
    assert "cost" in outcome.error


def test_check_counts_generalized_outputs_apart(run: Run, three: Path, tmp_path: Path) -> None:
    path = written(tmp_path / "wait.jsonl", LIT_WAIT)
    outcome = run("check", three, path, "--json")
    assert outcome.code == 0
    nothing = {"wrong": 0, "assumed_wrong": 0, "unseen": 0, "first_mismatch": None}
    figures = {kind: outcome.json[kind] for kind in ("transition", "reward", "cost")}
    assert all(0 < one.pop("log_loss") < 1 for one in figures.values())
    assert figures == {
        "transition": {"right": 2, "assumed_right": 0, **nothing},
        "reward": {"right": 1, "assumed_right": 1, **nothing},
        "cost": {"right": 1, "assumed_right": 1, **nothing},
    }
    words = [line.split() for line in run("check", three, path).out.splitlines()]
    assert ["generalized", "generalized"] in words
    assert ["right", "wrong", "right", "wrong", "unseen"] in words
    assert ["Cost", "Machine", "1", "0", "1", "0", "0"] in words


def test_an_assumed_answer_that_is_wrong_is_wrong(run: Run, three: Path, tmp_path: Path) -> None:
    path = written(tmp_path / "wait.jsonl", LIT_WAIT, {**LIT_WAIT, "cost": [3, 4]})
    outcome = run("check", three, path, "--json")
    assert outcome.code == 1
    cost = outcome.json["cost"]
    counts = ("right", "wrong", "assumed_right", "assumed_wrong", "unseen")
    assert [cost[name] for name in counts] == [2, 0, 1, 1, 0]
    first = cost["first_mismatch"]
    assert (first["trace"], first["step"], first["generalized"]) == (1, 1, True)
    assert "cost machine, trace 1, step 1" in run("check", three, path).out


def test_evidence_replays_no_more_than_needed(
    run: Run, three: Path, lamp: Path, tmp_path: Path
) -> None:
    path = written(tmp_path / "wait.jsonl", LIT_WAIT, LIT, DARK)
    plain, figures = (
        run("check", three, path, *more, "--json").json for more in ((), ["--evidence"])
    )
    for kind in ("transition", "reward", "cost"):
        assert figures[kind] == plain[kind]
        assert figures["evidence"][kind]["states"] == rs.load(three)[kind].states
    assert "cost machine: 2 states" in run("check", three, path, "--evidence").out


def test_traces_without_the_column(run: Run, three: Path, tmp_path: Path) -> None:
    path = written(tmp_path / "bare.jsonl", DARK, without="cost")
    for command in (["check", three, path], ["report", three, path, "-o", tmp_path / "r.html"]):
        outcome = run(*command)
        assert outcome.code == 2
        assert "cost" in outcome.error
    assert not (tmp_path / "r.html").exists()


def test_a_folder_is_checked_shard_by_shard(
    run: Run, three: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for number, trace in enumerate((LIT, {**LIT_WAIT, "cost": [3, 4]})):
        lines = written(tmp_path / "part.jsonl", trace)
        rs.read_traces(lines, columns=["cost"]).save(folder / f"{number}.parquet")
    whole = run("check", three, folder, "--json").json
    monkeypatch.setattr("resolvent.cli.inputs.REFINE_ABOVE_STEPS", 1)
    outcome = run("check", three, folder, "--json")
    assert outcome.code == 1
    assert {**outcome.json, "seconds": None} == {**whole, "seconds": None}
    assert outcome.json["cost"]["first_mismatch"]["trace"] == 1
    figures = run("infer", folder, "--outputs", "cost", "--json").json
    assert figures["states"] == {"cost": 2}


def test_show_any_machine(run: Run, three: Path) -> None:
    machines = rs.load(three)
    assert run("show", three, "--machine", "cost").out == machines["cost"].to_text()
    assert run("show", three).out == "\n".join(machine.to_text() for machine in machines.values())
    assert set(run("show", three, "--json").json) == {"timing", "transition", "reward", "cost"}
    outcome = run("show", three, "--machine", "fault")
    assert outcome.code == 2
    assert "no fault machine" in outcome.error
    assert "transition or reward or cost" in outcome.error
    assert "--machine transition or reward or cost" in run("show", three, "--format", "svg").error


def test_a_picture_of_the_only_machine(run: Run, lamp: Path, tmp_path: Path) -> None:
    path = tmp_path / "cost.json"
    assert run("infer", lamp, "--outputs", "cost", "-o", path).code == 0
    assert run("show", path, "--format", "svg").out == rs.load(path)["cost"].to_svg()


def test_a_reward_machine_file_of_three(run: Run, three: Path, lamp: Path, tmp_path: Path) -> None:
    options = ("--format", "reward-machine", "--traces", lamp)
    outcome = run("show", three, *options)
    pair = tmp_path / "pair.json"
    assert run("infer", lamp, "-o", pair).code == 0
    assert (outcome.code, outcome.out) == (0, run("show", pair, *options).out)
    alone = tmp_path / "cost.json"
    assert run("infer", lamp, "--outputs", "cost", "-o", alone).code == 0
    assert "there is no reward machine here" in run("show", alone, *options).error


def test_report_of_any_machines(run: Run, three: Path, lamp: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    figures = run("report", three, lamp, "-o", page, "--json").json
    assert figures["states"] == {"transition": 1, "reward": 2, "cost": 2}
    assert "Cost Machine" in page.read_text(encoding="utf-8")


def test_a_plan_needs_a_reward(run: Run, lamp: Path, tmp_path: Path) -> None:
    path = tmp_path / "cost.json"
    assert run("infer", lamp, "--outputs", "observation,cost", "-o", path).code == 0
    outcome = run("plan", path, lamp)
    assert outcome.code == 2
    assert "Reward Machine" in outcome.error
