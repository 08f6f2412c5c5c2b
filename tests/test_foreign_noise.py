"""The table of random environments of others: its rows run, and its page is what it says."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks" / "foreign" / "noisy.py"
PAGE = (ROOT / "docs" / "foreign-noise.md").read_text(encoding="utf-8")


def code(page):
    return re.findall(r"^```py\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def short(only):
    ran = subprocess.run(
        [sys.executable, SCRIPT, "--short", "--only", only],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={"PYTHONIOENCODING": "utf-8", "PYTHONWARNINGS": "ignore"},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_page_shows_the_code_that_is_run():
    (ran,) = code(short("Blackjack"))
    assert ran in code(PAGE), "run `make benchmark-foreign-noise`"


def test_frozen_lake_needs_no_memory_and_is_told_so():
    page = short("FrozenLake, its rows alone")
    assert "transition 1, reward 1" in page
    assert "- no memory is needed" in page
    assert "- no memory is needed" in PAGE
