"""`resolvent solve` that is interrupted, or killed: nothing is lost that was kept."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from importlib import import_module
from pathlib import Path

import gymnasium as gym
import pytest

import resolvent as rs
from interrupting import PATIENCE
from resolvent._util.files import atomic_folder, recover
from resolvent.exploration.buffer import FORGOTTEN, Buffer, SymbolIndex
from resolvent.exploration.tests import select_action
from resolvent.traces.vocabulary import Vocabulary

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "solve_kills.py"
SOLVE = (sys.executable, "-m", "resolvent", "solve")

SLOW_HOUSE = """
import time
from pathlib import Path
from resolvent.worlds import House

class SlowHouse(House):
    def step(self, action):
        # Once something is kept, it goes on until somebody interrupts it between two steps.
        time.sleep(1.0 if Path("kept").exists() else 0.005)
        return super().step(action)
"""


def dead_process():
    """Return the number of a process that is over."""
    over = subprocess.Popen([sys.executable, "-c", ""])
    over.wait()
    return over.pid


def test_a_folder_whose_writer_was_killed_is_restored(tmp_path):
    solved = rs.solve("resolvent/House-v0", budget=30, folder=tmp_path / "solved")
    (tmp_path / "solved").rename(tmp_path / f".solved.{dead_process()}-0.old")
    (tmp_path / f".solved.{dead_process()}-1.part").mkdir()
    assert rs.Solution.load(tmp_path / "solved").traces == solved.traces
    assert [one.name for one in tmp_path.iterdir()] == ["solved"]


def test_a_folder_that_is_being_written_is_left_alone(tmp_path):
    theirs = tmp_path / f".solved.{os.getpid()}-7.part"
    theirs.mkdir()
    (tmp_path / f".solved-too.{dead_process()}-0.old").mkdir()
    recover(tmp_path / "solved")
    assert theirs.exists()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_folder_is_complete_if_two_processes_write_it(tmp_path):
    for content in ("one", "two"):
        with atomic_folder(tmp_path / "kept", ("file",)) as made:
            (made / "file").write_text(content)
    assert (tmp_path / "kept" / "file").read_text() == "two"
    assert [one.name for one in tmp_path.iterdir()] == ["kept"]


def test_ctrl_c_saves_all_steps(tmp_path):
    (tmp_path / "slow.py").write_text(textwrap.dedent(SLOW_HOUSE))
    folder = tmp_path / "kept"
    command = [*SOLVE, "slow:SlowHouse", "-o", str(folder)]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever runs these tests in the background has them ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not folder.exists() and process.poll() is None:
        time.sleep(0.02)
    before = json.loads((folder / "solved.json").read_text())["guarantee"]["steps"]
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, out + err
    assert "interrupted after" in out
    assert "--resume" in out
    kept = rs.Solution.load(folder)
    assert kept.steps >= before > 0
    assert kept.guarantee.reason == "interrupted"
    whole = rs.solve("resolvent/House-v0")
    for one, other in zip(kept.traces, whole.traces, strict=False):
        assert one.actions == other.actions[: len(one.actions)]


@pytest.mark.slow
def test_killed_runs_resume_to_the_same_bytes(tmp_path):
    counts = tmp_path / "counts.json"
    found = subprocess.run(
        [sys.executable, BENCHMARK, "--solves", "3", "--seed", "5", "--output", counts],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr[-2000:]
    assert "3 of 3 solves" in found.stdout
    counted = json.loads(counts.read_text())
    assert (counted["solves"], counted["same"], counted["leftovers"]) == (3, 3, 0)


GATES = 90


class Gates(gym.Env):
    """Episodes begin at one of many gates, each of which is seen there alone."""

    observation_space = gym.spaces.Discrete(3 + GATES)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 3 + int(self.np_random.integers(GATES))
        return self.place, {"label": [f"gate {self.place % 5}"]}

    def step(self, action):
        self.place = 0 if self.place > 2 or not action else self.place + 1
        over = self.place == 3
        self.place = min(self.place, 2)
        return self.place, float(over), over, False, {"label": ["end"] if over else []}


@pytest.fixture
def some_are_left(monkeypatch):
    """Have every third gate left, and all gates that show one label."""

    def leaving(state, episode):
        gate = state.buffer.observations.values[episode.recorded.observations[0]]
        if not episode.length and not (gate % 3 and gate % 5):
            return None
        return select_action(state, episode)

    loop = import_module("resolvent.exploration.solve")
    monkeypatch.setattr(loop, "select_action", leaving)
    monkeypatch.setattr(loop, "FIRST_CHECKPOINT", 40)


@pytest.mark.parametrize("budget", [50, 130])
def test_a_resumed_run_gives_the_same_result(some_are_left, tmp_path, budget):
    whole = rs.solve(Gates(), budget=1_000)
    rs.solve(Gates(), budget=budget, folder=tmp_path / "part")
    resumed = rs.solve(Gates(), budget=1_000, resume=tmp_path / "part")
    assert resumed.traces == whole.traces
    assert resumed.guarantee == whole.guarantee
    assert not any(gate % 3 == 0 for gate in whole.traces.observations if gate > 2)
    assert -1 in whole.point.observations
    assert -1 in whole.point.labels


def test_symbols_without_a_step_are_forgotten_and_keep_their_codes():
    log = Buffer(["go"])
    log.observations, log.labels = SymbolIndex(["left", "here", "under way"]), SymbolIndex(["x"])
    log.begin(0, 1, 0).step(0, 0.0, 1, 0)
    log.close(0, 0)
    log.begin(0, 2, 0)
    log.forget_skipped_starts()
    assert log.observations.values == [FORGOTTEN, "here", "under way"]
    assert log.observations.code("left") == 3
    assert log.labels.values == ["x"]


def test_a_symbol_index_is_restored_from_its_codes():
    seen, vocabulary = SymbolIndex(["left", "b", "a"]), Vocabulary(["a", "b"])
    seen.keep_only([1, 2])
    assert seen.codes_in(vocabulary) == [-1, 1, 0]
    again = SymbolIndex.from_codes(vocabulary, seen.codes_in(vocabulary))
    assert (again.code("b"), again.code("a"), again.code("left")) == (1, 2, 3)
