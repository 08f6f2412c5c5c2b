"""Law 8: `load(save(x)) == x`."""

from dataclasses import fields

import numpy as np
from hypothesis import given, settings

import resolvent as rs
from resolvent.machines.io.json import decode, encode
from strategies import infer_options, trace_sets, world_traces


def assert_same_to_the_last_field(mine, yours):
    assert mine == yours
    assert mine.termination == yours.termination
    assert mine.provenance == yours.provenance
    for machine in ("transition", "reward"):
        one, other = getattr(mine, machine), getattr(yours, machine)
        assert type(one) is type(other)
        for field in fields(one):
            a, b = getattr(one, field.name), getattr(other, field.name)
            if field.name == "support":
                for name in ("transitions", "outputs", "constants", "constants_by_state"):
                    assert np.array_equal(getattr(a, name), getattr(b, name))
            elif isinstance(a, np.ndarray):
                assert a.dtype == b.dtype
                assert a.tolist() == b.tolist()
            else:
                assert a == b
                # 1 == True == 1.0, but they are different symbols.
                assert repr(a) == repr(b) or field.name in ("labels", "decisions")


@settings(deadline=None, max_examples=120)
@given(world_traces(), infer_options)
def test_a_pair_is_restored_from_its_bytes(traces, options):
    pair = rs.infer(traces, options=rs.InferenceOptions(**options)).machines
    data = encode(pair)
    again = decode(data)
    assert_same_to_the_last_field(pair, again)
    assert encode(again) == data


@settings(deadline=None, max_examples=150)
@given(trace_sets(), infer_options)
def test_symbols_of_every_type_are_restored(traces, options):
    try:
        pair = rs.infer(traces, options=rs.InferenceOptions(**options)).machines
    except rs.ContradictoryTraces:
        return
    data = encode(pair)
    assert_same_to_the_last_field(pair, decode(data))
    assert encode(decode(data)) == data


def test_a_loaded_pair_is_saved_to_the_same_bytes(tmp_path):
    traces = rs.TraceSet(
        [rs.Trace([(0, "é"), (1, '"')], [None, ["a", 'b"']], [True], [1 / 3], terminated=True)]
    )
    pair = rs.infer(traces, options=rs.InferenceOptions(reward_digits=3)).machines
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    pair.save(first)
    again = rs.load(first)
    again.save(second)
    assert_same_to_the_last_field(pair, again)
    assert first.read_bytes() == second.read_bytes()
