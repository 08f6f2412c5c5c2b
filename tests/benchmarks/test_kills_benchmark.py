"""Nodes, workers and drivers that are killed: `benchmarks/kills.py` with few trials."""

import subprocess
import sys
from pathlib import Path

import pytest

KILLS = Path(__file__).parents[2] / "benchmarks" / "kills.py"


@pytest.mark.slow
def test_killing_any_process_does_not_change_the_result():
    pytest.importorskip("ray")
    found = subprocess.run(
        [sys.executable, KILLS, "--trials", "4", "--rows", "20000", "--seed", "7"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr[-2000:]
    assert "nodes and workers killed: 4 of 4 results identical" in found.stdout
    assert "driver killed: 4 of 4 results identical, nothing made twice" in found.stdout
