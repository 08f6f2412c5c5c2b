"""The table of random environments of others: its rows run, and its page is what it says."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
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
    assert ran in code(PAGE), "run `make benchmark NAME=foreign_noise`"


def test_a_hidden_goal_is_inferred_from_its_sign():
    """States of the machine are where the goal is, and the plan is nearly the best there is."""
    (row,) = (line for line in PAGE.splitlines() if "a slippery field" in line and "|" in line)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[3] == "transition 1, reward 2"
    paid, _, most = cells[7].partition(" of ")
    assert float(paid) > 0.98 * float(most)
    assert "transition 1, reward" in short("a slippery field")


def test_frozen_lake_needs_no_memory():
    page = short("FrozenLake, its rows alone")
    assert "transition 1, reward 1" in page
    assert "- no memory is needed" in page
    assert "- no memory is needed" in PAGE
