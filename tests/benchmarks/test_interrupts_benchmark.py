"""Ctrl-C in the whole life of commands: `benchmarks/interrupts.py` with few trials."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

INTERRUPTS = Path(__file__).parents[2] / "benchmarks" / "interrupts.py"
OUTCOMES = {
    "said so in a line, exit code 130",
    "done before",
    "ended by the signal before Python was there",
    "ended by Python before this package could hear it",
}


@pytest.mark.slow
def test_ctrl_c_at_any_time_shows_no_traceback(tmp_path):
    counts = tmp_path / "interrupts.json"
    found = subprocess.run(
        [sys.executable, INTERRUPTS, "--interrupts", "46", "--seed", "7", "--output", counts],
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr[-2000:]
    told = json.loads(counts.read_text())
    assert told["wrong"] == []
    assert told["interrupts"] == sum(told["outcomes"].values()) == 46
    assert set(told["outcomes"]) <= OUTCOMES
    assert told["outcomes"]["said so in a line, exit code 130"] > 5
