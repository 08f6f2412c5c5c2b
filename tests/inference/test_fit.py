"""The records of an inference, in words and as JSON values."""

import pytest

from resolvent.inference.fit import Attempt, MinimalityProof


def test_seconds_make_no_difference():
    assert Attempt("edsm", "chosen", 2, 10.0, 0.1) == Attempt("edsm", "chosen", 2, 10.0, 3.0)
    assert Attempt("edsm", "chosen", 2, 10.0) != Attempt("rpni", "chosen", 2, 10.0)


def test_attempts_as_json_values():
    assert Attempt("rpni", "given up", seconds=0.5).as_dict() == {
        "name": "rpni",
        "outcome": "given up",
        "states": None,
        "bits": None,
        "seconds": 0.5,
        "workers": None,
    }


@pytest.mark.parametrize(
    ("attempt", "line"),
    [
        (Attempt("search", "chosen", 1, 1234.4), "search: 1 state, 1,234 bits"),
        (Attempt("rpni", "out of time", seconds=3.0), "rpni: out of time"),
        (Attempt("search, seed 1", "found", seconds=2.31, workers="ray"), None),
        (Attempt("search, seed 1", "stopped", workers="ray"), "search, seed 1: stopped"),
    ],
)
def test_attempts_in_words(attempt, line):
    assert str(attempt) == (line or "search, seed 1: found, 2.3 s")


@pytest.mark.parametrize(
    ("proof", "line"),
    [
        (MinimalityProof(7, 7, unique=True), "7 states, proven minimal: 6 are impossible; unique"),
        (MinimalityProof(2, 2, unique=True), "2 states, proven minimal: 1 is impossible; unique"),
        (MinimalityProof(1, 1, unique=True), "1 state, proven minimal; unique"),
        (
            MinimalityProof(3, 3, unique=False),
            "3 states, proven minimal: 2 are impossible; "
            "not unique: another machine of the same size fits as well",
        ),
        (
            MinimalityProof(3, 3),
            "3 states, proven minimal: 2 are impossible; whether it is unique is not decided",
        ),
        (MinimalityProof(9, 6), "at most 9 states, at least 6: not proven (time ran out)"),
    ],
)
def test_proofs_in_words(proof, line):
    assert str(proof) == line
    assert proof.proven is ("proven minimal" in line)
