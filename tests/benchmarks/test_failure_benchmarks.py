"""Commands and workers that are killed or interrupted, and full disks: benchmarks with few trials."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
OUTCOMES = {
    "said so in a line, exit code 130",
    "done before",
    "ended by the signal before Python was there",
    "ended by Python before this package could hear it",
}

pytestmark = pytest.mark.slow


def output_of(script, *arguments):
    ran = subprocess.run(
        [sys.executable, BENCHMARKS / script, *arguments, "--seed", "7"],
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr[-2000:]
    return ran.stdout


def test_no_failure_leaves_partial_or_lost_files(tmp_path):
    few = ("--kills", "26", "--full-disks", "13", "--others", "13")
    output_of("faults.py", *few, "--output", tmp_path / "faults.json")
    counts = json.loads((tmp_path / "faults.json").read_text())
    assert counts["wrong"] == []
    assert (counts["kills"], counts["two_writers"], counts["changing_files"]) == (26, 13, 13)


def test_ctrl_c_at_any_time_shows_no_traceback(tmp_path):
    output_of("interrupts.py", "--interrupts", "46", "--output", tmp_path / "interrupts.json")
    counts = json.loads((tmp_path / "interrupts.json").read_text())
    assert counts["wrong"] == []
    assert counts["interrupts"] == sum(counts["outcomes"].values()) == 46
    assert set(counts["outcomes"]) <= OUTCOMES
    assert counts["outcomes"]["said so in a line, exit code 130"] > 5


def test_killing_any_process_does_not_change_the_result():
    pytest.importorskip("ray")
    output = output_of("kills.py", "--trials", "4", "--rows", "20000")
    assert "nodes and workers killed: 4 of 4 results identical" in output
    assert "driver killed: 4 of 4 results identical, nothing made twice" in output
