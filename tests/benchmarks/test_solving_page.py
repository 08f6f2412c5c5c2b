"""The page of worlds that are solved: medians, ratios, and what did not get there."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from solving_page import output_counts, page, ratio_of


def explored(since, stopped, claims="optimal"):
    return {
        "optimal_since": since,
        "stopped_at": stopped,
        "claims": claims,
        "round": [0.001, 0.01, 0.1],
    }


def at_random(*steps):
    return {str(seed): {"steps": one, "most": 1_000} for seed, one in enumerate(steps)}


KNOWN = {
    "Near": {
        "explored": {"0": explored(50, 80), "1": explored(150, 170)},
        "random": at_random(100, 100),
    },
    "Far": {"explored": {"0": explored(20, None, "not waited for")}, "random": at_random(None)},
    "Not explored": {"explored": {}, "random": at_random(5)},
}


def cells(text, world):
    row = next(line for line in text.splitlines() if line.startswith(f"| {world} |"))
    return [one.strip() for one in row.strip("|").split("|")]


def test_medians_are_compared():
    told = cells(page(KNOWN), "Near")
    assert told == [
        *("Near", "2", "100 (50 to 150)", "125 (80 to 170)", "optimal", "100", "1.000"),
        "1 / 10 / 100",
    ]


def test_an_unfinished_random_collection_bounds_the_ratio():
    assert cells(page(KNOWN), "Far")[2:7] == ["20", "–", "not waited for", "–", "<0.020"]


def test_worlds_that_were_not_run_are_excluded_from_the_median():
    text = page(KNOWN)
    assert "| Not explored |" not in text
    assert "random steps until optimal: Not explored (5)." in text
    assert "over these 2 worlds is 0.510" in text


def test_seeds_in_which_random_collection_is_ahead_are_named():
    assert "single seeds of: Near (1 of 2)." in page(KNOWN)


def test_a_world_that_was_never_solved_has_no_ratio():
    assert ratio_of([None], [{"steps": 5, "most": 9}]) == ("–", float("inf"))
    assert output_counts([None, None]) == "–"
    assert output_counts([None, 3]) == "3 (1 of 2 never)"
