"""The benchmark of worlds without labels runs, in short."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "no_labels.py"


def test_events_of_small_worlds_are_discovered():
    ran = subprocess.run(
        [sys.executable, SCRIPT, "--short"], capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in ran.stdout.splitlines()[1:]]
    assert [row[0] for row in rows] == ["House", "TMaze"]
    for _, given, found, _ in rows:
        assert int(found.replace(",", "")) <= 10 * int(given.replace(",", ""))
