import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_outcome import Run

import resolvent as rs
from interrupting import interrupt
from resolvent.worlds import House

HOUSE = "resolvent/House-v0"
ENDLESS = """
import sys
import gymnasium as gym
from resolvent.worlds.mechanics import Mechanics
from resolvent.worlds.env import World

class Rules:
    actions = ("wait",)
    def starts(self): return [0]
    def step(self, state, action): return 0, 0.0, False
    def observation(self, state): return "here"
    def label(self, state): return frozenset()
    def transition_memory(self, state): return 0
    def reward_memory(self, state): return 0

class Endless(World):
    def __init__(self): super().__init__(Mechanics.explore(Rules()))
    def draw_starts(self, episodes):
        print("begun", file=sys.stderr, flush=True)
        return super().draw_starts(episodes)

gym.register("Endless-v0", entry_point=Endless)
"""
BEST = 0.95**5  # left, right, up, down, right, sit


def test_with_machines_the_house_is_solved(run: Run, machines: Path) -> None:
    outcome = run("train", HOUSE, "--machines", machines, "-n", "300")
    assert (outcome.code, outcome.err) == (0, "")
    assert "0.7738 discounted, exactly, over all starts" in outcome.out
    assert "the best possible is 0.7738" in outcome.out
    assert "native engine" in outcome.out


def test_without_memory_it_is_not(run: Run) -> None:
    outcome = run("train", HOUSE, "-n", "300", "--max-steps", "100")
    assert outcome.code == 0
    assert "value of the policy  0 discounted" in outcome.out
    assert "--machines" in outcome.out.splitlines()[-1]


def test_json_says_what_python_says(run: Run, machines: Path) -> None:
    command = ("train", HOUSE, "--machines", machines, "-n", "50", "--seed", "7")
    figures = run(*command, "--evaluate-every", "25", "--json").json
    env = rs.AugmentObservation(House(), machines)
    learned = rs.q_learning(env, episodes=50, seed=7, evaluate_every=25)
    assert figures["episodes"] == figures["first"]["episodes"] == figures["last"]["episodes"] == 50
    assert figures["steps"] == int(learned.curve.steps.sum())
    assert figures["observations"] == len(learned.observations)
    assert figures["first"]["return"] == pytest.approx(learned.curve.returns.mean())
    assert figures["evaluation"]["value"] == learned.evaluate(env).value
    assert figures["evaluation"]["optimum"] == pytest.approx(BEST)
    assert [one["episode"] for one in figures["evaluations"]] == [25, 50]
    assert (figures["output"], figures["curve"], figures["picture"]) == (None, None, None)


@pytest.mark.parametrize("flags", [["--counterfactual"], ["--shaping"], ["--stack", "2"]])
def test_every_kind_of_learning(run: Run, machines: Path, house: Path, flags: list[str]) -> None:
    given = [] if "--stack" in flags else ["--machines", machines, "--traces", house]
    common = ("train", HOUSE, *given, *flags, "-n", "60", "--max-steps", "80", "--json")
    native, python = (run(*common, "--engine", engine).json for engine in ("native", "python"))
    assert (native["engine"], python["engine"]) == ("native", "python")
    for figures in (native, python):
        del figures["engine"], figures["seconds"]
    assert native == python


def test_writes_policy_curve_and_picture(run: Run, machines: Path, tmp_path: Path) -> None:
    policy, curve, picture = (tmp_path / name for name in ("p.json", "c.csv", "c.svg"))
    files = ("-o", policy, "--curve", curve, "--picture", picture)
    outcome = run("train", HOUSE, "--machines", machines, "-n", "40", *files)
    assert (outcome.code, outcome.err) == (0, "")
    assert f"wrote {policy}, {curve}, {picture}" in outcome.out
    env = rs.AugmentObservation(House(), machines)
    learned = rs.q_learning(env, episodes=40)
    assert rs.rl.QTable.load(policy).q.tobytes() == learned.q.tobytes()
    with curve.open(newline="") as file:
        assert [int(row["steps"]) for row in csv.DictReader(file)] == learned.curve.steps.tolist()
    assert picture.read_bytes().startswith(b"<?xml")


def test_an_environment_of_others(run: Run, tmp_path: Path) -> None:
    outcome = run("train", "FrozenLake-v1", "-n", "20", "--curve", tmp_path / "c.json", "--json")
    assert outcome.code == 0
    assert outcome.json["engine"] == "python"
    assert outcome.json["evaluation"]["exact"] is False
    assert outcome.json["evaluation"]["optimum"] is None
    assert len(json.loads((tmp_path / "c.json").read_text())["steps"]) == 20
    again = run("train", "FrozenLake-v1", "-n", "20", "--json").json
    assert again["evaluation"] == outcome.json["evaluation"]


def test_without_discount_there_is_no_optimum_to_show(run: Run, machines: Path) -> None:
    figures = run("train", HOUSE, "--machines", machines, "--gamma", "1", "-n", "9", "--json").json
    assert figures["evaluation"]["optimum"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["NoSuchWorld-v0"], ["NoSuchWorld-v0"]),
        ([HOUSE, "--machines", "missing.json"], ["missing.json"]),
        ([HOUSE, "--machines", "m.json", "--stack", "2"], ["--machines", "--stack"]),
        ([HOUSE, "--shaping"], ["--shaping", "--traces"]),
        ([HOUSE, "--counterfactual", "--machines", "m.json"], ["--counterfactual", "--traces"]),
        ([HOUSE, "--alpha", "2"], ["alpha", "from 0 to 1"]),
        ([HOUSE, "--episodes", "0"], ["episodes", "at least 1"]),
        ([HOUSE, "--engine", "gpu"], ["gpu", "native"]),
        ([HOUSE, "--curve", "curve.txt"], ["curve.txt", ".csv"]),
        ([HOUSE, "--picture", "curve.pdf"], ["curve.pdf", ".svg"]),
        ([HOUSE, "-o", "missing/policy.json"], ["missing", "does not exist"]),
        (["FrozenLake-v1", "--engine", "native"], ["native", "auto"]),
        (["CartPole-v1", "--evaluate-every", "5"], ["evaluate_every"]),
        (["Pendulum-v1"], ["Discrete"]),
    ],
)
def test_what_cannot_be(run: Run, arguments: list[str], words: list[str]) -> None:
    outcome = run("train", *arguments)
    assert outcome.code == 2
    assert all(word in outcome.error for word in words), outcome.err


def test_machines_of_another_world_are_refused(run: Run, machines: Path) -> None:
    outcome = run("train", "resolvent/PhaseGrid3-v0", "--machines", machines)
    assert outcome.code == 2
    assert "another" in outcome.error


def test_bad_targets_are_refused_before_the_work(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resolvent.cli.commands.train.learn", pytest.fail)
    assert run("train", HOUSE, "--curve", tmp_path / "c.txt").code == 2
    assert run("train", HOUSE, "--picture", tmp_path).code == 2
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    outcome = run("train", HOUSE, "--picture", tmp_path / "c.svg")
    assert 'pip install "resolvent[figures]"' in outcome.error
    assert not list(tmp_path.iterdir())


def test_ctrl_c_ends_an_episode_that_never_would(tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS)
    process = subprocess.Popen(
        [sys.executable, "-m", "resolvent", "train", "endless:Endless-v0", "-o", "policy.json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        # Whoever runs these tests in the background has them ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    assert process.stderr.readline() == b"begun\n"
    interrupt(process)
    out, err = process.communicate()
    assert process.returncode == 130
    assert (out, err) == (b"", b"resolvent: interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == ["endless.py"]


def test_help(run: Run) -> None:
    outcome = run("train", "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert "--json" in outcome.out
    assert "train" in run("--help").out
