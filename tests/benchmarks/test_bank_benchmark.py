"""The benchmark of the bank: what counts as exact, limits, what is not run twice, the page."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("aalpy")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
from bank import Budgets, doubling, limited  # noqa: E402
from bank_contenders import AALPY, CONTENDERS, OURS  # noqa: E402
from bank_page import page  # noqa: E402

from protocols import BANK  # noqa: E402
from resolvent.inference.strategy import STRATEGIES  # noqa: E402


def found(exact, wrong=0.0, cpu=1.0):
    return {"exact": exact, "wrong": wrong, "cpu": cpu, "states": 3}


def cells(text, model, table=0):
    """A model's cells in one of the tables of a page, by the names of the columns."""
    tables = text.split("\n| model |")[1:]
    header, _, *lines = tables[table].splitlines()
    names = ["model", *(one.strip(" `") for one in header.strip("|").split("|"))]
    row = next(line for line in lines if line.startswith(f"| {model} |"))
    return dict(zip(names, (one.strip(" *") for one in row.strip("|").split("|")), strict=True))


def test_every_strategy_that_proves_nothing_is_tried():
    assert set(OURS) == {"default", *STRATEGIES} - {"exact"}
    assert not set(OURS) & set(AALPY)


@pytest.mark.parametrize("contender", CONTENDERS)
def test_entrants_find_the_smallest_model(contender):
    found = limited(Budgets(BANK["stop-and-wait"], 0), contender, 2_000, 60)
    assert found.pop("cpu") >= 0
    assert found == {"states": 3, "exact": True, "wrong": 0.0, "guessing": 0.0}


def test_a_limit_of_cpu_seconds_ends_a_run(monkeypatch):
    def for_ever(machine, walks):
        while True:
            pass

    monkeypatch.setitem(CONTENDERS, "edsm", for_ever)
    assert limited(Budgets(BANK["stop-and-wait"], 0), "edsm", 1_000, 1) == {"stopped": 1}


def test_an_error_is_recorded(monkeypatch):
    def outliers(machine, walks):
        raise ValueError("no")

    monkeypatch.setitem(CONTENDERS, "edsm", outliers)
    assert limited(Budgets(BANK["stop-and-wait"], 0), "edsm", 1_000, 9) == {
        "failed": "ValueError: no"
    }


def test_unobserved_transitions_are_not_tested():
    walks = Budgets(BANK["http2-stream"], 0)
    assert not walks.can_be_found(1_000, "AALpy RPNI")
    seen = walks.all_seen(256_000)
    assert walks.can_be_found(seen, "AALpy RPNI")
    assert not walks.can_be_found(seen // 2, "AALpy RPNI")
    assert walks.can_be_found(seen, "edsm")


def test_budgets_double():
    assert doubling(8_500) == [1_000, 2_000, 4_000, 8_000]


def test_the_page_counts_models_that_stay_exact_with_the_next_budget():
    key = "login/{}/0/{}".format
    known = {
        key("edsm", 4_000): found(True),
        key("edsm", 8_000): found(False),
        key("edsm", 16_000): found(True),
        key("edsm", 32_000): found(True),
        key("edsm", 10_000): found(True),  # for predictions only
        key("AALpy RPNI", 64_000): found(True),  # there is no larger one
        key("AALpy RPNI", 128_000): {"stopped": 9},
        key("AALpy GSM", 64_000): {"stopped": 9},
        "login/moves seen/0": 4_000,
    }
    row = cells(page(known), "login")
    assert row["edsm"] == "16,000"
    assert row["AALpy RPNI"] == "64,000"
    assert row["AALpy GSM"] == "—"
    assert row["transitions seen"] == "4,000"
    assert "`edsm`: at most half the steps of AALpy's best in 1 models" in page(known)


def test_the_page_shows_medians_and_worse_predictions():
    known = {
        f"login/{who}/{seed}/10000": found(False, wrong)
        for who, figures in {"edsm": (0.1, 0.3, 0.2), "AALpy GSM": (0.1, 0.1, 0.4)}.items()
        for seed, wrong in enumerate(figures)
    }
    row = cells(page(known), "login", table=1)
    assert (row["edsm"], row["AALpy GSM"]) == ("20.00%", "10.00%")
    assert "or none in time, after 10,000 steps in 1" in page(known)


def test_finished_runs_are_not_repeated(tmp_path):
    results, shown = tmp_path / "bank.json", tmp_path / "bank.md"
    command = [
        *(sys.executable, str(BENCHMARKS / "bank.py"), "--models", "stop-and-wait"),
        *("--contenders", "edsm", "AALpy GSM", "--seeds", "0", "--most", "4000"),
        *("--most-aalpy", "4000", "--results", str(results), "--page", str(shown)),
    ]
    first, second = (
        subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        ).stdout
        for _ in range(2)
    )
    assert "stop-and-wait/edsm/0/1000" in first
    assert second == ""
    assert set(json.loads(results.read_text())) == {
        *(
            f"stop-and-wait/{who}/0/{steps}"
            for who in ("edsm", "AALpy GSM")
            for steps in (1000, 2000)
        ),
        "stop-and-wait/moves seen/0",
    }
    assert cells(shown.read_text(encoding="utf-8"), "stop-and-wait")["AALpy GSM"] == "1,000"
