"""Law 11: a strategy that a user writes finds what the built-in one finds that says the same."""

from dataclasses import fields

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resolvent as rs
from own_strategies import AtLeast, FirstInOrder, MostAgreeing, Timid, Weighted
from resolvent.inference.engine import merge
from resolvent.preprocess.samples import ContradictoryRows
from strategies import infer_options, sample_sets, world_traces

TWINS = {"edsm": [MostAgreeing(), AtLeast(0)], "rpni": [FirstInOrder()]}
SAYING_THE_SAME = [(own, name) for name, twins in TWINS.items() for own in twins]
both = pytest.mark.parametrize(("own", "name"), SAYING_THE_SAME, ids=lambda one: str(one))

some_samples = st.one_of(
    sample_sets(),
    sample_sets(labels=2, alphas=2, outputs=2, traces=25, length=25),
    sample_sets(labels=40, alphas=3, outputs=2, traces=30, length=8),
)


def outcome(samples, strategy):
    """The rows of the contradiction, or every field of the automaton."""
    try:
        found = merge(samples, order=strategy)
    except ContradictoryRows as contradiction:
        return contradiction.first, contradiction.second
    columns = {one.name: getattr(found, one.name) for one in fields(found)}
    # The native engine knows better which scores still hold, and counts its work.
    del columns["attempts"], columns["work"]
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in columns.items()
    }


@both
@settings(deadline=None, max_examples=100)
@given(samples=some_samples)
def test_own_strategies_equal_the_native_engine_on_any_samples(own, name, samples):
    assert outcome(samples, own) == outcome(samples, name)


@both
@settings(deadline=None, max_examples=30)
@given(traces=world_traces(), options=infer_options)
def test_own_strategies_give_the_same_machines_and_events(own, name, traces, options):
    mine = rs.infer(traces, options=rs.InferenceOptions(**{**options, "strategy": own}))
    built_in = rs.infer(traces, options=rs.InferenceOptions(**{**options, "strategy": name}))
    assert_same(mine, built_in)


@both
def test_own_strategies_give_the_same_machines_in_the_house(own, name):
    house = rs.collect(gym.make("resolvent/House-v0"), episodes=150, seed=0, max_steps=60)
    mine, built_in = rs.infer(house, strategy=own), rs.infer(house, strategy=name)
    assert (mine.transition.states, mine.reward.states) == (2, 2)
    assert_same(mine, built_in)


def assert_same(mine, built_in):
    said = mine.machines.provenance
    assert said.options["strategy"] == mine.options.strategy.name
    assert mine.machines.replacing(provenance=built_in.machines.provenance) == built_in.machines
    for machine in ("transition", "reward"):
        assert mine.machines[machine].decisions == built_in.machines[machine].decisions


@pytest.mark.parametrize("own", [AtLeast(3), Weighted(), Weighted(2), Timid()], ids=repr)
@settings(deadline=None, max_examples=40)
@given(traces=world_traces(), refine=st.booleans())
def test_machines_of_any_strategy_explain_the_traces(own, traces, refine):
    result = rs.infer(traces, strategy=own, options=rs.InferenceOptions(refine=refine))
    assert result.machines.score(traces).perfect


@settings(deadline=None, max_examples=100)
@given(samples=some_samples)
def test_counts_add_up_as_states_are_merged(samples):
    """Each query was answered, over all states, as often as rows ask it."""
    try:
        found = merge(samples, order=Weighted())
    except ContradictoryRows:
        return
    asked, times = np.unique(samples.alpha[samples.alpha >= 0], return_counts=True)
    summed = dict.fromkeys(asked.tolist(), 0)
    for alpha, count in zip(found.output_alpha.tolist(), found.output_count.tolist(), strict=True):
        summed[alpha] += count
    assert summed == dict(zip(asked.tolist(), times.tolist(), strict=True))
