from dataclasses import replace
from math import comb, isclose, log

import gymnasium as gym
import naive_evidence as naive
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resolvent as rs
from resolvent.evaluation.holdout import Holdout, error_bound, is_part, split
from resolvent.replay.replaying import states_at_steps
from resolvent.replay.steps import step_queries
from strategies import infer_options, world_traces


def test_no_failure_gives_the_rule_of_three():
    assert isclose(error_bound(0, 300), log(20) / 300)
    assert error_bound(0, 2) == error_bound(1, 2) < 1.0  # never above that of one failure
    assert error_bound(5, 5) == 1.0
    assert error_bound(0, 0) == 1.0


@given(st.integers(2, 60), st.data(), st.sampled_from([0.01, 0.05, 0.3]))
def test_some_failures_give_the_exact_limit(trials, data, delta):
    """At the limit, so few failures have a chance of exactly delta."""
    failures = data.draw(st.integers(1, trials - 1))
    rate = error_bound(failures, trials, delta)
    chance = sum(
        comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(failures + 1)
    )
    assert isclose(chance, delta, rel_tol=1e-6)


def test_published_limits():
    """Clopper and Pearson's upper limit, from tables: 5 of 100 at 95% one-sided."""
    assert round(error_bound(5, 100), 4) == 0.1023
    assert round(error_bound(10, 20), 4) == 0.6980


def test_many_trials_do_not_overflow():
    """The normal approximation: 0.0095 + 1.645 · √(0.0095 · 0.9905 / 2,000,000)."""
    assert round(error_bound(19_000, 2_000_000), 5) == 0.00961


@pytest.mark.parametrize("delta", [0.0, 1.0])
def test_a_delta_that_is_no_probability_is_refused(delta):
    with pytest.raises(rs.OptionError, match="between 0 and 1"):
        error_bound(1, 2, delta)


def walk(observations, labels, rewards=None):
    steps = len(observations) - 1
    return rs.Trace(observations, labels, ["go"] * steps, rewards or [0] * steps)


TAUGHT = rs.TraceSet([walk("ab", [None, None]), walk("cab", [None, "key", None], [0, 1])])


def held_out(machines, traces):
    """What holding out these traces says of the machines."""
    steps = step_queries(machines, traces, states_at_steps(machines, traces))
    return Holdout.of(steps.values(), traces)


def test_a_trace_fails_by_one_wrong_or_unseen_step():
    pair = rs.infer(TAUGHT).machines
    new = rs.TraceSet(
        [
            walk("ab", [None, None]),  # right
            walk("aba", [None, None, None]),  # its second step is unseen
            walk("ac", [None, None]),  # wrong
            walk("ab", [None, None], [7]),  # a wrong reward
        ]
    )
    holdout = held_out(pair, new)
    assert (holdout.traces, holdout.failures, holdout.wrong, holdout.assumed_wrong) == (4, 3, 2, 0)
    assert holdout.carries_over is None


def test_wrong_generalized_outputs_are_counted_separately():
    """At c, going led to a before the key was read; it was never tried afterwards."""
    pair = rs.infer(TAUGHT).machines
    new = rs.TraceSet([walk("acb", [None, "key", None]), walk("acab", [None, "key", None, None])])
    assert pair.transition.run([{"key"}]) == 0  # the next observation needs no memory
    assert pair.reward.run([{"key"}]) == 1
    assert pair.reward.basis(1, ("c", 0), "go") is rs.Basis.GENERALIZED
    wrong = rs.TraceSet([walk("cca", [None, "key", None], [0, 5])])
    holdout = held_out(pair, wrong)
    assert (holdout.failures, holdout.wrong, holdout.assumed_wrong) == (1, 1, 1)
    assert held_out(pair, new[:1]).assumed_wrong == 0


@settings(deadline=None, max_examples=60)
@given(world_traces(), infer_options)
def test_a_pair_is_part_of_itself_and_not_of_a_pair_with_other_outputs(traces, options):
    pair = rs.infer(traces, options=rs.InferenceOptions(**options)).machines
    assert is_part(pair, pair)
    outputs = pair.transition.constant_value
    if len(outputs) and len(pair.transition.outputs) > 1:
        changed = outputs.copy()
        changed[0] = (changed[0] + 1) % len(pair.transition.outputs)
        other = pair.replacing(replace(pair.transition, constant_value=changed))
        assert not is_part(pair, other)
        assert not is_part(other, pair)


@settings(deadline=None, max_examples=100)
@given(world_traces(traces=12), infer_options, st.integers(1, 12))
def test_the_part_relation_equals_its_definition(traces, options, first):
    """Machines of some traces against those of all, and the other way round."""
    whole, part = (
        rs.infer(some, options=rs.InferenceOptions(**options)).machines
        for some in (traces, traces[:first])
    )
    assert is_part(part, whole) == naive.is_part(part, whole)
    assert is_part(whole, part) == naive.is_part(whole, part)


def test_a_part_of_a_pair_fails_at_least_as_often():
    house = rs.collect(gym.make("resolvent/House-v0"), episodes=60, seed=0)
    whole, part = rs.infer(house).machines, rs.infer(house[:12]).machines
    new = rs.collect(gym.make("resolvent/House-v0"), episodes=60, seed=1)
    if is_part(part, whole):
        assert held_out(whole, new).failures <= held_out(part, new).failures


def test_a_split_holds_out_a_fifth_in_any_order():
    house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    pair = rs.infer(house).machines
    holdout = split(pair, house, lambda traces: rs.infer(traces).machines)
    assert holdout == Holdout(39, 0, 0, 0, 0.05, carries_over=True)
    turned = house[::-1]
    assert split(pair, turned, lambda traces: rs.infer(traces).machines) == holdout
    assert round(holdout.bound, 4) == 0.0768


def test_too_few_traces_to_hold_out():
    same = rs.TraceSet([walk("ab", [None, None])] * 5)
    pair = rs.infer(same).machines
    assert split(pair, same, lambda traces: rs.infer(traces).machines) is None

    def refuses(traces):
        raise rs.errors.TimeLimitReached("too long")

    house = rs.collect(gym.make("resolvent/House-v0"), episodes=20, seed=0)
    assert split(pair, house, refuses) is None


@pytest.mark.parametrize(
    ("found", "ending"),
    [
        (Holdout(100, 0, 0), "and 3.00% have a wrong step"),
        (Holdout(100, 0, 0, carries_over=True), "are part of those here)"),
        (Holdout(100, 2, 1, carries_over=False), "which differ)"),
    ],
)
def test_a_bound_as_text(found, ending):
    assert str(found).endswith(ending)
