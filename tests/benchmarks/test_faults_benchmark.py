"""Commands killed and on full disks: `benchmarks/faults.py` with few trials."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FAULTS = Path(__file__).parents[2] / "benchmarks" / "faults.py"


@pytest.mark.slow
def test_no_failure_leaves_partial_or_lost_files(tmp_path):
    few = ("--kills", "26", "--full-disks", "13", "--others", "13")
    counts = tmp_path / "faults.json"
    found = subprocess.run(
        [sys.executable, FAULTS, *few, "--seed", "7", "--output", counts],
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr[-2000:]
    told = json.loads(counts.read_text())
    assert told["wrong"] == []
    assert (told["kills"], told["two_writers"], told["changing_files"]) == (26, 13, 13)
