import importlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from cli_outcome import Run

from interrupting import PATIENCE
from resolvent.cli.commands import reproduce as command
from resolvent.paper.reproduce import Settings, settings
from resolvent.paper.runs import Run as OneRun


def misses_a_module(stopwatch):
    importlib.import_module("no_such_module")


class Grids(Settings):
    """Two methods on the smallest grid, one of which does not exist."""

    def runs(self, experiment):
        for run in super().runs(experiment):
            if run.setting == "3x3" and run.method in ("rpni", "edsm"):
                yield run
        if experiment == "baselines":
            yield OneRun("baselines", "3x3", "aalpy", 0, misses_a_module)


@pytest.fixture
def small(monkeypatch):
    def chosen(**options):
        return Grids(**asdict(settings(**options)))

    monkeypatch.setattr(command, "chosen_settings", chosen)


def test_a_folder_of_tables_and_figures(run: Run, tmp_path: Path, small: None) -> None:
    outcome = run("reproduce", "baselines", "--quick", "-o", tmp_path / "r")
    assert (outcome.code, outcome.err) == (0, "")
    assert "[1/3] baselines, 3x3, rpni, repetition 0: found" in outcome.out
    assert "2 states, exact" in outcome.out
    assert "did not run: baselines, 3x3, aalpy: not installed" in outcome.out
    assert "3×3 grid, 275 traces" in outcome.out
    names = {path.name for path in (tmp_path / "r").iterdir()}
    assert names == {"README.md", "about.json", "baselines.png", "baselines.svg", "runs"}

    again = run("reproduce", "baselines", "--quick", "-o", tmp_path / "r", "--json")
    assert (again.code, again.err) == (0, "")  # nothing left to run
    assert again.json["runs"] == 3
    assert again.json["about"]["command"] == "resolvent reproduce --quick"
    assert again.json["tables"][0]["rows"][0][3:5] == ["2", "exact"]


def test_of_some_methods_only_those_are_run(run: Run, tmp_path: Path, small: None) -> None:
    outcome = run("reproduce", "--quick", "--method", "edsm", "-o", tmp_path / "r", "--json")
    assert (outcome.code, outcome.json["runs"]) == (0, 1)
    assert [row[0] for row in outcome.json["tables"][0]["rows"]] == ["ours, edsm"]
    wrong = run("reproduce", "--quick", "--method", "magic", "-o", tmp_path / "r")
    assert wrong.code == 2
    assert "'magic' is not one of rpni, edsm" in wrong.err


def test_other_settings_are_refused_in_one_line(run: Run, tmp_path: Path, small: None) -> None:
    folder = tmp_path / "r"
    assert run("reproduce", "ablation", "--quick", "-o", folder).code == 0
    outcome = run("reproduce", "ablation", "--quick", "--time-limit", "5", "-o", folder)
    assert outcome.code == 2
    assert "time_limit, 20.0 there, 5.0 here" in outcome.error
    assert "name another folder with -o" in outcome.error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["figure 7"], "'figure 7' is not one of baselines, ablation, policy"),
        (["--time-limit", "0"], "it must be above 0"),
        (["--time-limit", "nan"], "it must be above 0"),
        (["--repetitions", "0"], "use at least 1"),
    ],
)
def test_bad_options(run: Run, tmp_path: Path, options: list[str], message: str) -> None:
    outcome = run("reproduce", *options, "-o", tmp_path / "r")
    assert outcome.code == 2
    assert message in outcome.error
    assert not (tmp_path / "r").exists()


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "resolvent", "reproduce", "policy", "-o", "r"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    assert process.stdout is not None
    assert "policy, 25x25, machines, repetition 0: found" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "to continue: resolvent reproduce policy -o r" in err
    assert "Traceback" not in err
    records = list((tmp_path / "r" / "runs").rglob("*"))
    assert not [path for path in records if path.name.endswith(".part")]
    for path in records:
        if path.is_file():
            assert json.loads(path.read_text())["status"] == "found"
