"""Other machines that traces hardly tell from the one found."""

import json
from collections import Counter
from functools import cache
from math import log

import numpy as np
import pytest

import resolvent as rs
from noisy_worlds import bell_world, noisy_house
from resolvent.machines.io.json import decode, encode
from resolvent.noise import marginal_likelihood
from resolvent.preprocess.samples import Histories, output_samples
from resolvent.preprocess.timing import LabelTiming


@cache
def told(traces):
    """What is found of the rewards in the world with a bell, and in which traces."""
    world = bell_world(traces)
    return rs.infer(world, noise="auto", outputs=["reward"]), world


def samples_of(traces):
    histories = Histories.of(traces, LabelTiming.CURRENT)
    return output_samples(traces, histories, "reward")


def test_few_traces_leave_the_number_of_states_open():
    _, noisy = noisy_house()
    few = rs.infer(noisy[:10], noise="auto", outputs=["observation"])
    (other,) = [one for one in few.alternatives["transition"] if one.transition is None]
    assert (few.machines.transition.states, other.machine.states) == (2, 1)
    assert -log(100) < other.log_odds < 0
    assert other.odds == pytest.approx(few.odds("transition")[1])
    assert f"open: 1 state: {other.odds:.2g} times as likely" in str(few)
    told = {"states": 1, "log_odds": other.log_odds, "transition": None}
    assert told in few.as_dict()["alternatives"]["transition"]
    assert few.as_dict()["log_odds"]["transition"]["1"] == pytest.approx(other.log_odds)


def test_an_alternative_is_a_whole_machine():
    _, noisy = noisy_house()
    few = rs.infer(noisy[:10], noise="auto", outputs=["observation"])
    (machine,) = [one.machine for one in few.alternatives["transition"] if one.transition is None]
    counted = Counter(
        (seen, done, then)
        for one in noisy[:10]
        for seen, done, then in zip(
            one.observations, one.actions, one.observations[1:], strict=False
        )
    )
    for (seen, done, then), count in counted.items():
        assert machine.counts(0, seen, done)[then] == count
    assert machine.transitions.tolist() == [[0] * len(machine.labels)]


def test_many_traces_leave_nothing_open_of_what_they_read_often():
    inferred, _ = told(60)
    machine = inferred.machines.reward
    assert machine.states == 2
    assert machine.confidence(0, {"bell"}) == machine.confidence(1, {"bell"}) == 1.0
    assert [one.transition[1] for one in inferred.alternatives["reward"]] == [frozenset({"snow"})]


def test_an_uncertain_transition_makes_an_alternative_of_the_same_size():
    inferred, traces = told(60)
    machine = inferred.machines.reward
    (other,) = inferred.alternatives["reward"]
    state, label, target = other.transition
    assert (state, label) == (0, frozenset({"snow"}))
    assert target != machine.step(0, {"snow"})
    assert other.machine.states == machine.states
    samples = samples_of(traces)
    moves = np.maximum(machine.transitions, 0)
    before = marginal_likelihood(samples, moves).log_evidence
    moves[state, machine.labels.code(label)] = target
    expected = marginal_likelihood(samples, moves).log_evidence - before
    assert other.log_odds == pytest.approx(expected, abs=0.1)
    assert machine.confidence(0, {"snow"}) == pytest.approx(1 / (1 + other.odds))
    assert str(other).startswith(f"state 0 reads snow → {target}: ")
    assert other.as_dict()["transition"] == {"state": 0, "label": ["snow"], "target": target}
    assert str(other) in str(inferred)


def test_no_inferred_transition_has_a_likelier_target():
    """With 30 traces of the house the search alone leaves one that has."""
    _, noisy = noisy_house()
    few = rs.infer(noisy[:30], noise="auto", outputs=["observation"]).machines.transition
    alternatives = few.support.alternatives
    assert (alternatives.log_odds[alternatives.target >= 0] >= 0).all()


def test_files_hold_the_odds_of_transitions():
    machines = told(60)[0].machines
    back = decode(encode(machines))
    assert encode(back) == encode(machines)
    key = {"bell"}
    assert back.reward.confidence(0, key) == machines.reward.confidence(0, key) > 0.99
    assert b'"alternatives"' not in encode(noisy_house()[0])


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ([[99, 0, 3.0]], "alternatives do not fit the transitions"),
        ([[0, 9, 3.0]], "alternatives do not fit the transitions"),
        ([[1, 0, 3.0], [0, 0, 3.0]], "alternatives do not fit the transitions"),
        ([[1, 1, 3.0]], "name the present target"),
    ],
)
def test_damaged_alternatives_are_refused(wrong, why):
    content = json.loads(encode(told(60)[0].machines))
    stored = [machine["support"] for machine in content["machines"]]
    (damaged,) = [support for support in stored if "alternatives" in support]
    damaged["alternatives"] = wrong
    with pytest.raises(rs.errors.ModelError, match=why):
        decode(json.dumps(content).encode())
