from math import log
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings

import resolvent as rs
from noisy_worlds import dice, loaded_die, noisy_house, taught
from resolvent.machines.likelihood.smoothing import Smoothing, smoothing_of
from strategies import noisy_machines


def rows_of(machine):
    """The answers that a machine counted, as lists of (code, count), constants over all states."""
    times = dict(zip(machine._answers, machine.support.outputs.tolist(), strict=True))
    rows = [
        list(machine.spread.rows.get(key, [(value, times[key])]))
        for key, value in machine._answers.items()
    ]
    totals = machine.support.constants.tolist()
    return rows + [[one] for one in zip(machine.constant_value.tolist(), totals, strict=True)]


def likelihood(machine, told):
    """How likely answers are, each by the others to its question; and half an odd one more."""
    total = 0.5 * log(told.noise)
    for row in rows_of(machine):
        for code, count in row:
            rest = {value: times - (value == code) for value, times in row}
            asked = sum(rest.values())
            if not asked:
                continue
            main = min(value for value in rest if rest[value] == max(rest.values()))
            share = 1 - told.noise if code == main else told.noise / (len(machine.outputs) - 1)
            chance = (rest[code] + told.strength * share) / (asked + told.strength)
            total += count * log(chance)
    return total


@settings(deadline=None, max_examples=100)
@given(noisy_machines())
def test_no_other_smoothing_foretells_answers_better(found):
    machines, _ = found
    for machine in machines.values():
        told = smoothing_of(machine)
        asked = sum(count for row in rows_of(machine) for _, count in row)
        assert told.novelty == 0.5 / (asked + 1)
        if len(machine.outputs) == 1:
            assert told.noise == 0  # there is no other output
            continue
        best = likelihood(machine, told)
        if all(sum(count for _, count in row) == 1 for row in rows_of(machine)):
            assert (told.noise, told.strength) == (0.5, 1)  # no answer is left to foretell another
            continue
        for noise in np.geomspace(1e-3, 0.95, 12):
            for strength in (1, 4, 64, 4096):
                # Shares of noise are tried in steps, which costs a little.
                other = likelihood(machine, Smoothing(float(noise), strength, 0))
                assert best >= other - max(0.02, 1e-3 * abs(best))


def test_a_machine_that_saw_no_odd_answer_is_nearly_sure():
    """By 20 dice that always show their own number, a hundred times each."""
    throws = rs.TraceSet(
        rs.Trace([die, die], [None] * 2, ["roll"], [float(die)])
        for die in range(20)
        for _ in range(100)
    )
    machine = rs.infer(throws, outputs=["reward"]).machines.reward
    told = smoothing_of(machine)
    odd = told.strength * told.noise / (100 + told.strength)
    assert odd == pytest.approx(0.5 / 2000, rel=0.1)
    assert told.novelty == 0.5 / 2001


def test_what_was_told_once_foretells_nothing():
    throws = rs.TraceSet(
        rs.Trace([die, die], [None] * 2, ["roll"], [float(die)]) for die in range(3)
    )
    machine = rs.infer(throws, outputs=["reward"]).machines.reward
    assert smoothing_of(machine) == Smoothing(0.5, 1, 0.5 / 4)


def test_questions_that_are_alike_are_trusted_alike():
    """Fifty dice, each loaded in the same way, and fifty that differ."""

    def thrown(shares, seed):
        random = Random(seed)
        return rs.TraceSet(
            rs.Trace([die, die], [None] * 2, ["roll"], [float(random.random() < share)])
            for die, share in enumerate(shares)
            for _ in range(40)
        )

    def smoothed(shares, seed=0):
        one_of_each = rs.TraceSet(
            rs.Trace([die, die], [None] * 2, ["roll"], [0.0]) for die in range(len(shares))
        )
        machines = rs.infer(one_of_each, outputs=["reward"]).machines
        return smoothing_of(taught(machines, thrown(shares, seed)).reward)

    alike = smoothed([0.1] * 50)
    assert alike.noise == pytest.approx(0.1, abs=0.02)
    assert alike.strength >= 64
    assert smoothed([0.0, 0.4] * 25).strength < 16


def test_repeated_throws_make_surer():
    few, many = ([1.0, 1.0, 6.0] * often for often in (1, 30))
    scores = [loaded_die(*some).score(dice(*some)).reward.log_loss for some in (few, many)]
    entropy = -(2 / 3 * log(2 / 3) + 1 / 3 * log(1 / 3))
    assert entropy < scores[1] < scores[0]


def test_what_is_foretold_with_a_chance_comes_as_often_in_fresh_steps():
    machines, traces = noisy_house()
    score = taught(machines, traces[:150]).score(traces[150:])
    for kind in ("transition", "reward"):
        told = score[kind].calibration
        assert sum(row.steps for row in told) > 4000
        for row in told:
            assert abs(row.predicted - row.right) < 0.01 + 3 / np.sqrt(row.steps)
