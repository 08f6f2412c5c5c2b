"""Indistinguishable states are merged; others are not."""

from dataclasses import replace

import numpy as np
import pytest

import resolvent as rs
from resolvent.inference.counterexamples import merge_equal_states
from resolvent.replay import Corpus, replay
from resolvent.traces.source import InMemorySource
from worlds import random_world

WORLD = random_world(3, size=9, labels=4, tm_states=4)
TRACES = WORLD.rollouts(400, seed=0)
PAIR = rs.infer(TRACES).machines


def doubled(table, copies):
    """Each state in some copies; every label moves on to the next copy."""
    states = len(table)
    return np.concatenate(
        [np.where(table >= 0, table + states * ((copy + 1) % copies), -1) for copy in range(copies)]
    ).astype(np.int32)


@pytest.mark.parametrize("copies", [2, 3, 5])
def test_copies_of_states_are_merged_again(copies):
    swollen = replace(PAIR.transition, transitions=doubled(PAIR.transition.transitions, copies))
    pair = PAIR.replacing(swollen, replace(PAIR.reward, supplemented=False))
    seen = replay(pair, Corpus(InMemorySource([TRACES])))
    assert not len(seen.machines["transition"].conflicts)
    found = merge_equal_states(swollen, seen.machines["transition"])
    assert np.array_equal(found.transitions, PAIR.transition.transitions)
    assert swollen.decisions is not None
    assert found.decisions is None


def test_minimal_machines_are_not_compacted():
    seen = replay(PAIR, Corpus(InMemorySource([TRACES])))
    assert merge_equal_states(PAIR.transition, seen.machines["transition"]) is None
    assert merge_equal_states(PAIR.reward, seen.machines["reward"]) is None


def test_states_that_differ_only_later_are_not_merged():
    """0 -a-> 1 -b-> 2 and 0 -b-> 3 -b-> 4: 1 and 3 have no answers, 2 and 4 different ones."""

    def trace(labels, last):
        steps = len(labels)
        ask = ["wait"] * steps + ["ask"]
        return rs.Trace([0] * (steps + 2), [None, *labels, None], ask, [0.0] * steps + [last])

    traces = rs.TraceSet([trace(["a", "b"], 1.0), trace(["b", "b"], 2.0), trace(["a"], 0.0)])
    pair = rs.infer(
        traces, strategy="rpni", options=rs.InferenceOptions(supplement=False, remove_trivial=False)
    ).machines
    seen = replay(pair, Corpus(InMemorySource([traces])))
    before = pair.reward.states
    found = merge_equal_states(pair.reward, seen.machines["reward"])
    assert found is None
    assert before >= 3


def test_machines_with_very_many_states_are_not_compacted():
    machine = replace(PAIR.transition, transitions=doubled(PAIR.transition.transitions, 40))
    seen = replay(PAIR, Corpus(InMemorySource([TRACES])))
    assert merge_equal_states(machine, seen.machines["transition"]) is None
