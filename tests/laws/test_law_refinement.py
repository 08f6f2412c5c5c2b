"""Refined machines explain every trace, and are those of all traces once these show enough."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_law_order_of_traces import assert_same, bare

import resolvent as rs
from resolvent.inference import refinement
from strategies import infer_options, world_traces
from worlds import random_world

WORLD = random_world(3, size=9, labels=4, tm_states=4)
TRACES = WORLD.rollouts(400, seed=0)


@pytest.fixture
def tiny_sample(monkeypatch):
    """Start from a trace or two, and add few: so that there are many rounds."""
    monkeypatch.setattr(refinement, "SAMPLE_STEPS", 20)
    monkeypatch.setattr(refinement, "FIRST_COUNTEREXAMPLES", 2)


@settings(deadline=None, max_examples=100)
@given(traces=world_traces(), options=infer_options)
def test_a_refined_machine_explains_every_trace(traces, options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refinement, "SAMPLE_STEPS", 1)
        patch.setattr(refinement, "FIRST_COUNTEREXAMPLES", 1)
        result = rs.infer(traces, options=rs.InferenceOptions(refine=True, **options))
    assert result.machines.score(traces).perfect
    assert result.refinement.traces <= len(traces)


@settings(deadline=None, max_examples=60)
@given(traces=world_traces(), options=infer_options, data=st.data())
def test_shuffled_or_repeated_traces_refine_to_the_same(traces, options, data):
    again = data.draw(st.lists(st.integers(0, len(traces) - 1), max_size=4))
    order = data.draw(st.permutations([*range(len(traces)), *again]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refinement, "SAMPLE_STEPS", 1)
        patch.setattr(refinement, "FIRST_COUNTEREXAMPLES", 1)
        one, other = (
            rs.infer(some, options=rs.InferenceOptions(refine=True, **options))
            for some in (traces, traces.take(order))
        )
    assert_same(one, other, support=not again)
    assert one.refinement.rounds == other.refinement.rounds


@pytest.mark.parametrize(
    ("options", "digits"),
    [({}, None), ({}, 1), ({"supplement": False}, None), ({"remove_redundant": False}, 1)],
)
def test_with_enough_traces_refinement_changes_nothing(tiny_sample, options, digits):
    traces = WORLD.rollouts(1000, seed=0)
    whole = rs.infer(
        traces, options=rs.InferenceOptions(refine=False, reward_digits=digits, **options)
    )
    refined = rs.infer(
        traces, options=rs.InferenceOptions(refine=True, reward_digits=digits, **options)
    )
    assert refined.refinement.rounds > 2
    assert refined.refinement.traces < len(traces) / 2
    assert refined.machines == whole.machines
    for name in ("transition", "reward"):
        mine, yours = (getattr(one.machines, name).support for one in (refined, whole))
        for column in ("transitions", "outputs", "constants"):
            assert np.array_equal(getattr(mine, column), getattr(yours, column))
        mine, yours = getattr(refined, name), getattr(whole, name)
        assert mine.constant_outputs == yours.constant_outputs
        assert mine.outputs_by_state == yours.outputs_by_state


def test_a_folder_is_refined_as_traces_in_memory(tiny_sample, tmp_path):
    sets = [TRACES[start : start + 50] for start in range(0, 400, 50)]
    for number, traces in enumerate(sets):
        traces.save(tmp_path / f"{number}.parquet")
    there = rs.infer(rs.scan_traces(tmp_path))
    here = rs.infer(TRACES, options=rs.InferenceOptions(refine=True))
    assert there.machines == here.machines
    assert there.machines.provenance == here.machines.provenance
    assert (there.traces, there.steps) == (len(TRACES), TRACES.steps)


def test_many_steps_are_refined_by_default(monkeypatch):
    assert rs.infer(TRACES).refinement.traces == len(TRACES)
    monkeypatch.setattr(refinement, "REFINE_ABOVE_STEPS", TRACES.steps - 1)
    monkeypatch.setattr(refinement, "SAMPLE_STEPS", 2_000)
    assert rs.infer(TRACES).refinement.traces < len(TRACES)
    assert rs.infer(TRACES, options=rs.InferenceOptions(refine=False)).refinement.traces == len(
        TRACES
    )


# ---- updating --------------------------------------------------------------


@settings(deadline=None, max_examples=80)
@given(traces=world_traces(), options=infer_options, data=st.data())
def test_an_updated_machine_explains_old_and_new_traces(traces, options, data):
    cut = data.draw(st.integers(1, len(traces)))
    result = rs.infer(traces[:cut], options=rs.InferenceOptions(**options))
    if cut < len(traces):
        result = result.update(traces[cut:])
    assert result.machines.score(traces).perfect
    assert result.machines.provenance.traces_sha256 == traces.digest
    assert (result.traces, result.steps) == (len(traces), traces.steps)


@pytest.mark.parametrize("cuts", [(300,), (2, 10, 50, 51), (399,)])
def test_updates_give_the_machines_of_one_inference(cuts):
    whole = rs.infer(TRACES)
    result = rs.infer(TRACES[: cuts[0]])
    for start, stop in zip(cuts, [*cuts[1:], len(TRACES)], strict=True):
        result = result.update(TRACES[start:stop])
    assert bare(result.machines, support=True) == bare(whole.machines, support=True)
    for name in ("transition", "reward"):
        mine, yours = (getattr(one.machines, name).support for one in (result, whole))
        for column in ("transitions", "outputs", "constants"):
            assert np.array_equal(getattr(mine, column), getattr(yours, column))


def test_without_a_conflict_nothing_is_inferred_again():
    first = rs.infer(TRACES[:300])
    second = first.update(TRACES[300:])
    assert second.refinement.rounds == 1
    assert second.refinement.traces == 300
    assert second.machines.transition.decisions == first.machines.transition.decisions
    assert second.traces == 400
    assert first.traces == 300


def test_an_update_that_merges_states_keeps_both_machines(monkeypatch):
    first = rs.infer(TRACES[:300])
    smaller = iter([replace(first.machines.transition, decisions=None)])
    monkeypatch.setattr(refinement, "merge_equal_states", lambda machine, seen: next(smaller, None))
    second = first.update(TRACES[300:])
    assert bare(second.machines, True) == bare(rs.infer(TRACES).machines, True)
    assert second.transition.merges == first.transition.merges
    assert second.transition.seconds == 0.0
    assert second.trivial == first.trivial


def test_a_result_from_a_folder_can_be_updated(tiny_sample, tmp_path):
    for number in range(3):
        TRACES[number * 100 : number * 100 + 100].save(tmp_path / f"{number}.parquet")
    result = rs.infer(rs.scan_traces(tmp_path)).update(TRACES[300:])
    assert bare(result.machines, True) == bare(rs.infer(TRACES).machines, True)


def test_an_update_needs_traces():
    with pytest.raises(rs.TraceError, match="no traces to update with"):
        rs.infer(TRACES[:3]).update(TRACES[:0])


# ---- contradictions --------------------------------------------------------


def contradicting():
    """Two short traces that no machine can explain together."""
    return [
        rs.TraceSet([rs.Trace([999, following], [None, None], [0], [0.0])])
        for following in (998, 997)
    ]


@pytest.mark.parametrize("places", [(0, 0), (0, 3), (2, 3)])
def test_contradictions_within_and_between_shards_name_both_traces(tiny_sample, tmp_path, places):
    sets = [TRACES[start : start + 100] for start in range(0, 400, 100)]
    for place, odd in zip(places, contradicting(), strict=True):
        sets[place] = sets[place] + odd
    for number, traces in enumerate(sets):
        traces.save(tmp_path / f"part-{number}.parquet")
    with pytest.raises(rs.ContradictoryTraces) as caught:
        rs.infer(rs.scan_traces(tmp_path), noise="none")
    message = str(caught.value)
    assert message.count("part-") == 2
    named = {(f"part-{place}.parquet", "trace 10") for place in places}
    assert any(file in message and trace in message for file, trace in named)


def test_contradictions_with_new_traces_name_the_set(tiny_sample):
    one, other = contradicting()
    with pytest.raises(rs.ContradictoryTraces, match="trace set 1, trace 0"):
        rs.infer(TRACES[:50] + one, noise="none").update(other)


def test_a_scanned_folder_cannot_be_inferred_without_refinement(tmp_path):
    TRACES[:3].save(tmp_path / "0.parquet")
    with pytest.raises(rs.OptionError, match="read_traces"):
        rs.infer(rs.scan_traces(tmp_path), options=rs.InferenceOptions(refine=False))


def test_time_runs_out_between_shards(tmp_path):
    for number in range(3):
        TRACES[:20].save(tmp_path / f"{number}.parquet")
    with pytest.raises(
        rs.errors.TimeLimitReached, match="while reading traces, with 1 of 3 shards"
    ):
        rs.infer(rs.scan_traces(tmp_path), time_limit=1e-6)
