from collections import Counter
from dataclasses import replace
from math import log, log2
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings

import resolvent as rs
from noisy_worlds import dice, loaded_die, noisy_house, taught
from resolvent.machines.likelihood import Smoothing, smoothing_of
from strategies import noisy_machines


def counted(machine):
    """The answers that a machine counted, as a list of (query, {code: count}) for each state.

    Answers that are the same in every state are those of one state.
    """
    times = dict(zip(machine._outputs_by_state, machine.support.outputs.tolist(), strict=True))
    rows = [
        (key[1], machine.output_counts.rows.get(key, {value: times[key]}))
        for key, value in machine._outputs_by_state.items()
    ]
    totals = machine.support.constants.tolist()
    alike = zip(machine.constant_query, machine.constant_value.tolist(), totals, strict=True)
    return rows + [(query, {value: count}) for query, value, count in alike]


def left_out(machine):
    """Yield each answer with what is left without it: of its state, or of all that then agree."""
    rows = counted(machine)
    for number, (query, row) in enumerate(rows):
        for code, count in row.items():
            rest = Counter(row)
            rest[code] -= 1
            others = sum(
                (
                    Counter(one)
                    for place, (asked, one) in enumerate(rows)
                    if asked == query and place != number
                ),
                Counter(),
            )
            if machine.is_noisy and len(+(rest + others)) == 1 and not (rest + others)[code]:
                rest = rest + others
            if rest.total():
                yield code, count, rest


def likelihood(machine, smoothing):
    """How likely it is that the main answer came, or did not, by the others to its query."""
    log_likelihood = 0.0
    for code, count, rest in left_out(machine):
        most, total = max(rest.values()), rest.total()
        main = min(value for value in rest if rest[value] == most)
        noise = smoothing.noise[min(int(log2(total)), len(smoothing.noise) - 1)]
        chance = (most + smoothing.strength * (1 - noise)) / (total + smoothing.strength)
        log_likelihood += count * log(chance if code == main else 1 - chance)
    return log_likelihood


@settings(deadline=None, max_examples=50)
@given(noisy_machines())
def test_no_single_noise_rate_predicts_outputs_better(inferred):
    machines, _ = inferred
    for machine in machines.values():
        smoothing = smoothing_of(machine)
        total = sum(count for _, row in counted(machine) for count in row.values())
        assert smoothing.novelty == 0.5 / (total + 1)
        if len(machine.outputs) == 1:
            assert set(smoothing.noise) == {0.0}  # there is no other output
            continue
        if not any(True for _ in left_out(machine)):
            assert (set(smoothing.noise), smoothing.strength) == ({0.5}, 1)  # no evidence
            continue
        best = likelihood(machine, smoothing)
        for noise in np.geomspace(1e-3, 0.95, 12):
            for strength in (1, 4, 64, 4096):
                other = replace(
                    smoothing, noise=(float(noise),) * len(smoothing.noise), strength=strength
                )
                # Half an odd answer is taken to have come beside all others, and shares are
                # tried in steps.
                slack = 0.1 + 0.5 * abs(log(noise / min(smoothing.noise)))
                assert best >= likelihood(machine, other) - slack - 1e-3 * abs(best)


def test_without_deviating_outputs_a_machine_is_nearly_certain():
    """By 20 dice that always show their own number, a hundred times each."""
    throws = rs.TraceSet(
        rs.Trace([die, die], [None] * 2, ["roll"], [float(die)])
        for die in range(20)
        for _ in range(100)
    )
    machine = rs.infer(throws, outputs=["reward"]).machines.reward
    smoothing = smoothing_of(machine)
    odd = smoothing.strength * smoothing.noise[-1] / (100 + smoothing.strength)
    # Half an odd answer among those that came, and among as many others.
    assert odd == pytest.approx(0.5 / 4000, rel=0.1)
    assert smoothing.novelty == 0.5 / 2001


def test_a_single_output_predicts_nothing():
    throws = rs.TraceSet(
        rs.Trace([die, die], [None] * 2, ["roll"], [float(die)]) for die in range(3)
    )
    machine = rs.infer(throws, outputs=["reward"]).machines.reward
    assert smoothing_of(machine) == Smoothing((0.5,) * 7, 1, 1, 1, 0.5 / 4)


def test_queries_that_are_alike_are_trusted_alike():
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
    assert alike.noise[5] == pytest.approx(0.1, abs=0.02)  # asked 32 to 63 times
    assert alike.strength >= 64
    assert smoothed([0.0, 0.4] * 25).strength < 16


def test_repeated_throws_increase_certainty():
    few, many = ([1.0, 1.0, 6.0] * often for often in (1, 30))
    scores = [loaded_die(*some).score(dice(*some)).reward.log_loss for some in (few, many)]
    entropy = -(2 / 3 * log(2 / 3) + 1 / 3 * log(1 / 3))
    assert entropy < scores[1] < scores[0]


def test_predicted_probabilities_are_frequencies_in_fresh_steps():
    machines, traces = noisy_house()
    score = taught(machines, traces[:150]).score(traces[150:])
    for name in ("transition", "reward"):
        smoothing = score[name].calibration
        assert sum(row.steps for row in smoothing) > 4000
        for row in smoothing:
            assert abs(row.predicted - row.right) < 0.01 + 3 / np.sqrt(row.steps)


def odd_likelihood(machine, deviating_strength, uniform_strength):
    """How likely odd answers are, by those left in their state and those of other states."""
    rows = {key: dict(row) for key, row in machine.output_counts.rows.items()}
    total = 0.0
    for (state, query), row in rows.items():
        for code, count in row.items():
            rest = {value: times - (value == code) for value, times in row.items()}
            main = min(value for value in rest if rest[value] == max(rest.values()))
            if code == main:
                continue
            elsewhere = Counter()
            for (other, asked), its in rows.items():
                if asked == query and other != state:
                    its_main = machine._outputs_by_state[other, asked]
                    elsewhere.update({one: its[one] for one in its if one not in (its_main, main)})
            even = uniform_strength / (len(machine.outputs) - 1)
            base = (elsewhere[code] + even) / (elsewhere.total() + uniform_strength)
            odd = sum(rest.values()) - rest[main]
            total += count * log(
                (rest[code] + deviating_strength * base) / (odd + deviating_strength)
            )
    return total


@settings(deadline=None, max_examples=50)
@given(noisy_machines())
def test_no_other_strength_predicts_deviating_outputs_better(inferred):
    machines, _ = inferred
    for machine in machines.values():
        if len(machine.outputs) > 1 and machine.is_noisy:
            smoothing = smoothing_of(machine)
            best = odd_likelihood(machine, smoothing.deviating_strength, smoothing.uniform_strength)
            for strength in 2.0 ** np.arange(-6, 13):
                other = odd_likelihood(machine, float(strength), smoothing.uniform_strength)
                assert best >= other - 1e-6
