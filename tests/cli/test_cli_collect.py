import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_outcome import Run

from resolvent import collect, read_traces

NOISY_WORLD = """
import gymnasium as gym

class NoisyWorld(gym.Env):
    observation_space = gym.spaces.Discrete(2)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        print("welcome to the noisy world")
        return 0, {"labels": set()}

    def step(self, action):
        return 1, 0.0, True, False, {"labels": {"done"}}

gym.register("NoisyWorld-v0", entry_point=NoisyWorld)
"""


@pytest.mark.parametrize("name", ["house.jsonl", "house.parquet", "house.jsonl.gz"])
def test_writes_what_was_asked_for(run: Run, tmp_path: Path, name: str) -> None:
    outcome = run("collect", "resolvent/House-v0", "-n", "7", "--seed", "3", "-o", tmp_path / name)
    assert (outcome.code, outcome.err) == (0, "")
    assert "7 traces" in outcome.out
    assert len(read_traces(tmp_path / name)) == 7


def test_same_seed_same_traces(run: Run, tmp_path: Path) -> None:
    for seed, name in (("0", "first"), ("0", "again"), ("1", "other")):
        command = ("collect", "resolvent/House-v0", "-n", "5", "--seed", seed)
        assert run(*command, "-o", tmp_path / f"{name}.jsonl").code == 0
    first, again, other = (
        (tmp_path / f"{name}.jsonl").read_bytes() for name in ("first", "again", "other")
    )
    assert first == again != other


def test_max_steps_and_json(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "house.jsonl"
    command = ("collect", "resolvent/House-v0", "-n", "9", "--max-steps", "2", "-o", path)
    outcome = run(*command, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    traces = read_traces(path)
    assert max(map(len, traces)) == 2
    assert outcome.json["traces"] == 9
    assert outcome.json["steps"] == traces.steps
    assert outcome.json["output"] == str(path)


PRICED_WORLD = """
import gymnasium as gym

class PricedWorld(gym.Env):
    observation_space = gym.spaces.Discrete(2)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return 0, {"labels": set()}

    def step(self, action):
        return 1, 0.0, True, False, {"labels": set(), "cost": 7, "fault": True}

gym.register("PricedWorld-v0", entry_point=PricedWorld)
"""


def test_columns_are_kept_and_converted(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "priced_world.py").write_text(PRICED_WORLD)
    monkeypatch.syspath_prepend(tmp_path)
    named = ("--columns", "cost", "--columns", "fault")
    path = tmp_path / "priced.jsonl"
    command = ("collect", "priced_world:PricedWorld-v0", "-n", "2")
    outcome = run(*command, *named, "-o", path, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.json["columns"] == ["reward", "cost", "fault"]
    assert [trace.columns for trace in read_traces(path)] == [{"cost": (7,), "fault": (True,)}] * 2
    assert run("convert", path, tmp_path / "priced.parquet").code == 0
    assert read_traces(tmp_path / "priced.parquet") == read_traces(path)
    missing = run(*command, "--columns", "cots", "-o", tmp_path / "no.jsonl")
    assert missing.code == 2
    assert 'gives no info["cots"]' in missing.error


def test_imports_a_module_beside_the_user_and_keeps_its_noise_off_stdout(tmp_path: Path) -> None:
    (tmp_path / "noisy_world.py").write_text(NOISY_WORLD)
    command = ["collect", "noisy_world:NoisyWorld-v0", "-n", "2", "-o", "noisy.jsonl", "--json"]
    done = subprocess.run(
        (sys.executable, "-P", "-m", "resolvent", *command),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["steps"] == 2
    assert "welcome" in done.stderr


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ("NoSuchWorld-v0", ["NoSuchWorld-v0", "doesn't exist"]),
        ("resolvent/House-v9", ["resolvent/House-v9", "v0"]),
        ("nowhere/House-v0", ["nowhere", "not found"]),
        ("no_such_module:House-v0", ["no_such_module", "import"]),
        ("not an id", ["not an id", "resolvent/House-v0"]),
        ("CartPole-v1", ["no label", "step 0"]),
    ],
)
def test_unknown_environment(run: Run, tmp_path: Path, environment: str, words: list[str]) -> None:
    outcome = run("collect", environment, "-n", "1", "-o", tmp_path / "out.jsonl")
    assert outcome.code == 2
    assert all(word in outcome.error for word in words)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "word"),
    [("out.txt", ".jsonl"), ("missing/out.jsonl", "does not exist"), ("", "folder")],
)
def test_bad_target_is_refused_before_the_work(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, word: str
) -> None:
    monkeypatch.setattr("resolvent.cli.commands.collect.collect_traces", pytest.fail)
    outcome = run("collect", "resolvent/House-v0", "-o", tmp_path / name)
    assert outcome.code == 2
    assert word in outcome.error
    assert not list(tmp_path.iterdir())


def test_no_episodes(run: Run, tmp_path: Path) -> None:
    outcome = run("collect", "resolvent/House-v0", "-n", "0", "-o", tmp_path / "out.jsonl")
    assert outcome.code == 2
    assert "--episodes" in outcome.error


def test_many_at_once_play_what_one_worker_would(run: Run, tmp_path: Path) -> None:
    words = ("collect", "resolvent/TMaze-v0", "-n", "40", "--seed", "2", "--on", "threads")
    assert run(*words, "-o", tmp_path / "a.parquet").code == 0
    assert read_traces(tmp_path / "a.parquet") == collect(
        "resolvent/TMaze-v0", episodes=40, seed=2, on="threads"
    )


def test_workers_that_nobody_knows_are_refused(run: Run, tmp_path: Path) -> None:
    outcome = run("collect", "resolvent/TMaze-v0", "--on", "dask", "-o", tmp_path / "a.parquet")
    assert outcome.code == 2
    assert "on='dask': choose threads, processes, ray" in outcome.err
