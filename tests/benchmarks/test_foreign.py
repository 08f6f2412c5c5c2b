"""The table of environments and logs of others: its script runs, and its page is what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("minigrid")
pytest.importorskip("popgym")

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "foreign" / "table.py"
PAGE = (ROOT / "docs" / "foreign.md").read_text(encoding="utf-8")


def rows(page):
    """The table as dictionaries, by the name of the row."""
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    header, *cells = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    table = [dict(zip(header, row, strict=True)) for row in cells]
    return {f"{row['from']}: {row['task']}": row for row in table}


def code(page):
    return re.findall(r"^```py\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def run_short():
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--short"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_script_runs_and_little_data_is_enough_for_small_systems():
    """One test, since the script takes half a minute, in whichever process it runs."""
    short = run_short()
    the_page_has_the_rows_and_the_code_that_are_run(short)
    little_data_is_enough_for_small_systems(short)
    stochastic_rows_have_warnings(short)
    failures_have_warnings(short)


def test_the_page_states_the_same_numbers():
    stochastic_rows_have_warnings(PAGE)
    failures_have_warnings(PAGE)


def the_page_has_the_rows_and_the_code_that_are_run(short):
    ran, shown = rows(short), rows(PAGE)
    assert list(ran) == list(shown), "run `make benchmark NAME=foreign`"
    assert [row["lines"] for row in ran.values()] == [row["lines"] for row in shown.values()]
    assert code(short) == code(PAGE), "run `make benchmark NAME=foreign`"


def little_data_is_enough_for_small_systems(short):
    ran = rows(short)
    for name in ("a vending machine", "an end of a TCP connection", "logins to an account"):
        assert ran[f"log: {name}"]["solved"] == "yes: the true machine"
    for name in (
        "Gymnasium: FrozenLake",
        "Gymnasium: FrozenLake, its rows alone shown",
        "POPGym: RepeatFirst, easy",
    ):
        assert ran[name]["solved"] == "yes"
        assert ran[name]["correct"] == "100.0%"


def stochastic_rows_have_warnings(page):
    random = {
        name: row["warnings"] for name, row in rows(page).items() if row["solved"] == "stochastic"
    }
    assert {"Gymnasium: Blackjack", "POPGym: HigherLower, easy"} <= set(random)
    assert all("`contradictions`" in said and "`noise`" in said for said in random.values())


def failures_have_warnings(page):
    """What does not come out was warned of, or contradicted when it was tried."""
    for name, row in rows(page).items():
        if row["solved"] == "no":
            assert row["warnings"] != "–", name


def test_the_page_lists_every_requirement():
    shown = rows(PAGE)
    for origin, least in (("Gymnasium", 3), ("MiniGrid", 3), ("POPGym", 3), ("log", 3)):
        assert sum(row["from"] == origin for row in shown.values()) >= least
    assert sum(row["solved"].startswith("yes") for row in shown.values()) >= 12
