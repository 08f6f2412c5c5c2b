"""Answers that vary, in files: refused in one line where they do not fit."""

import json

import pytest

import resolvent as rs
from noisy_worlds import dice, loaded_die
from resolvent.machines.io.json import decode, encode

DATA = encode(loaded_die(1.0, 2.0, 6.0, 2.0, 2.0, 6.0))


def edited(**entries):
    """The file with entries of its machine changed."""
    content = json.loads(DATA)
    (machine,) = content["machines"]
    for name, value in entries.items():
        (machine if name == "spread" else machine["tables"])[name] = value
    return json.dumps(content).encode()


def test_the_file_holds_every_answer_with_its_count():
    (machine,) = json.loads(DATA)["machines"]
    assert machine["tables"]["outputs"] == [1.0, 2.0, 6.0]
    assert machine["tables"]["by_state"] == [[0, 0, 0, 1]]
    assert machine["tables"]["constant"] == []
    assert machine["spread"] == [[0, 0, 1], [0, 1, 3], [0, 2, 2]]
    assert json.loads(DATA)["support"]["reward"]["by_state"] == [6]
    assert decode(DATA).reward.counts(0, 0, "roll") == {2.0: 3, 6.0: 2, 1.0: 1}


def test_a_machine_without_noise_says_nothing_of_it():
    assert b"spread" not in encode(rs.infer(dice(1.0, 1.0)).machines)


@pytest.mark.parametrize(
    ("spread", "message"),
    [
        ([], "holds nothing"),
        ([[0, 1, 6]], "only one answer"),
        ([[0, 0, 3], [0, 1, 1], [0, 2, 2]], "does not hold the most frequent answer"),
        ([[0, 0, 3], [0, 1, 3]], "does not hold the most frequent answer"),
        ([[0, 1, 4], [0, 0, 2]], "not sorted or has an entry twice"),
        ([[0, 1, 4], [0, 1, 2]], "not sorted or has an entry twice"),
        ([[0, 0, 0], [0, 1, 6]], "a count that is not from 1"),
        ([[0, 0, -1], [0, 1, 7]], "a count that is not from 1"),
        ([[0, 0, 1], [0, 1, 2**41]], "a count that is not from 1"),
        ([[0, 0, 1], [0, 1, 2**80]], "damaged"),
        ([[0, 0, 1], [1, 1, 5]], "out of range"),
        ([[0, 0, 1], [0, 3, 5]], "out of range"),
        ([[-1, 0, 1], [0, 1, 5]], "out of range"),
        ([[0, 0, 1], [0, 1, 4]], "support does not fit the spread"),
        ([[0, 0], [0, 1]], "damaged"),
        ([[0, 0, 0.5], [0, 1, 5]], "damaged"),
        ({}, "damaged"),
    ],
)
def test_a_spread_that_does_not_fit_is_refused(spread, message):
    with pytest.raises(rs.errors.ModelError, match=message) as caught:
        decode(edited(spread=spread), "dice.json")
    assert str(caught.value).startswith("dice.json is damaged: ")
    assert "\n" not in str(caught.value)
