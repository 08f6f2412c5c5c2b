from pathlib import Path

import pytest
from cli_outcome import Run


def test_a_report_is_written(run: Run, machines: Path, house: Path, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    outcome = run("report", machines, house, "-o", path)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == f"wrote {path}: open it in a browser\n"
    page = path.read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "held-out traces fail" in page
    assert '"curve":null,"policy":null' in page


@pytest.mark.parametrize("curve_name", ["curve.csv", "curve.json"])
def test_curve_and_policy(
    run: Run, machines: Path, house: Path, tmp_path: Path, curve_name: str
) -> None:
    path, curve, policy = (tmp_path / name for name in ("report.html", curve_name, "policy.json"))
    trained = ("train", "resolvent/House-v0", "--machines", machines, "-n", "20")
    assert run(*trained, "--curve", curve, "-o", policy).code == 0
    assert (
        run("report", machines, house, "-o", path, "--curve", curve, "--policy", policy).code == 0
    )
    page = path.read_text(encoding="utf-8")
    assert '"curve":{"episodes":20,"each":1,' in page
    assert '"policy":{"states":' in page
    assert "observation orangeroom, reward state 0, transition state 1" in page


def test_a_plan_is_shown(run: Run, machines: Path, house: Path, tmp_path: Path) -> None:
    path, plan = tmp_path / "report.html", tmp_path / "plan.json"
    assert run("plan", machines, house, "-o", plan).code == 0
    figures = run("report", machines, house, "-o", path, "--policy", plan, "--json").json
    assert figures["output"] == str(path)
    assert figures["bytes"] == path.stat().st_size
    assert figures["states"] == {"transition": 2, "reward": 2}
    assert "observation orangeroom, reward state 0, transition state 1" in path.read_text("utf-8")


def refused(run: Run, machines: Path, house: Path, option: str, file: Path) -> str:
    """Give a report such a file, which it must refuse, and return what it says."""
    page = file.with_name("report.html")
    outcome = run("report", machines, house, "-o", page, option, file)
    assert outcome.code == 2
    assert not page.exists()
    return outcome.error


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format":"resolvent-plan"}', '{"format":1}'])
def test_not_a_policy(run: Run, machines: Path, house: Path, tmp_path: Path, text: str) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text(text)
    assert "policy.json: not a" in refused(run, machines, house, "--policy", policy)


def test_machines_are_not_a_policy(run: Run, machines: Path, house: Path, tmp_path: Path) -> None:
    copied = tmp_path / "machines.json"
    copied.write_bytes(machines.read_bytes())
    assert "resolvent train -o" in refused(run, machines, house, "--policy", copied)
    assert "does not exist" in refused(run, machines, house, "--policy", tmp_path / "nowhere.json")


@pytest.mark.parametrize(
    "text",
    [
        *("", "episode,return\n", "episode\n1\n", "return\nnan\n", "return\nx\n"),
        *("{", '{"steps":[1]}', '{"return":[]}', '{"return":1}', '{"return":["x"]}'),
    ],
)
def test_not_a_curve(run: Run, machines: Path, house: Path, tmp_path: Path, text: str) -> None:
    curve = tmp_path / "curve.csv"
    curve.write_text(text)
    assert "learning curve" in refused(run, machines, house, "--curve", curve)


def test_traces_of_another_world(run: Run, machines: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text('{"observations":[1,2],"labels":[[],[]],"actions":["fly"],"rewards":[0]}\n')
    outcome = run("report", machines, other, "-o", tmp_path / "report.html")
    assert outcome.code == 2
    assert "another environment" in outcome.error


def test_no_folder(run: Run, machines: Path, house: Path, tmp_path: Path) -> None:
    outcome = run("report", machines, house, "-o", tmp_path / "no" / "report.html")
    assert outcome.code == 2
    assert "does not exist" in outcome.error
