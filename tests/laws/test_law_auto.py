"""Law 12: strategy "auto" is never worse than any order of merging that it tries."""

from hypothesis import given, settings

import resolvent as rs
from resolvent.inference.portfolio import ENTRANTS, FEWEST, FIRST
from resolvent.inference.strategy import STRATEGIES
from resolvent.machines.likelihood import description_bits
from strategies import infer_options, world_traces

MERGING = {name for name, one in STRATEGIES.items() if one.merges}
ORDERS = [FIRST.name, *(one.name for one in ENTRANTS if one.name in MERGING)]


def bits(machines):
    return {kind: description_bits(one) for kind, one in machines.items()}


def first_kind(machines):
    """The machine that all strategies learn from the same samples; others are told its states."""
    return next(iter(machines))


@settings(deadline=None, max_examples=25)
@given(traces=world_traces(), options=infer_options)
def test_no_order_finds_a_shorter_description(traces, options):
    options = {**options, "noise": "none"}
    chosen = rs.infer(
        traces, options=rs.InferenceOptions(**{**options, "strategy": "auto"})
    ).machines
    for order in ORDERS:
        other = rs.infer(
            traces, options=rs.InferenceOptions(**{**options, "strategy": order})
        ).machines
        kind = first_kind(chosen)
        if chosen[kind].states > FEWEST:  # smaller ones are taken as they are
            assert bits(chosen)[kind] <= bits(other)[kind] + 1e-9
        else:
            assert chosen[kind].states <= other[kind].states


@settings(deadline=None, max_examples=40)
@given(traces=world_traces())
def test_the_chosen_one_is_the_shortest_of_all_tried(traces):
    result = rs.infer(traces, noise="none")
    for kind, tried in result.tried.items():
        (chosen,) = [one for one in tried if one.outcome == "chosen"]
        assert chosen.bits == min(one.bits for one in tried if one.bits is not None)
        assert chosen.states == result.statistics[kind].states


@settings(deadline=None, max_examples=20)
@given(traces=world_traces())
def test_repeats_and_the_order_of_traces_make_no_difference(traces):
    one = rs.infer(traces, noise="none")
    other = rs.infer(rs.TraceSet([*traces, *traces][::-1]), noise="none")
    assert one.tried == other.tried
    assert one.machines.transition == other.machines.transition
