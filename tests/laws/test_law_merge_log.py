"""The decisions of a search, replayed in order, build the machine that it found."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resolvent as rs
from resolvent.inference import refinement
from resolvent.machines.io.json import decode, encode
from strategies import infer_options, world_traces
from worlds import random_world

STRATEGIES = {
    "strategy": st.sampled_from(["edsm", "rpni", "likelihood", "backtracking", "search", "exact"])
}
WORLD = random_world(3, size=9, labels=4, tm_states=4).rollouts(400, seed=0)


def assert_builds(machine):
    """What is decided is what the machine does; what is not is a label that changes nothing."""
    found, table = {0}, {}
    for one in machine.decisions:
        assert one.source in found
        assert (one.source, one.label) not in table
        assert one.new == (one.target not in found)
        assert (one.folded == 0) == one.new
        assert not (one.new and one.agreeing)
        found.add(one.target)
        table[one.source, one.label] = one.target
    assert found == set(range(machine.states))
    assert [one.new for one in machine.decisions].count(True) == machine.states - 1
    for state in range(machine.states):
        for label in machine.labels:
            target = machine.step(state, label)
            assert table.get((state, label), state) == (state if target is rs.UNSEEN else target)
            assert (state, label) not in table or target is not rs.UNSEEN


@settings(deadline=None, max_examples=150)
@given(
    traces=world_traces(),
    options=infer_options,
    more=st.fixed_dictionaries(STRATEGIES),
    engine=st.sampled_from(["native", "python"]),
    refine=st.booleans(),
)
def test_replaying_the_decisions_builds_the_machine(traces, options, more, engine, refine):
    chosen = {**options, **more, "effort": 0.001, "refine": refine}
    if chosen["strategy"] in ("edsm", "rpni"):
        chosen["engine"] = engine
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refinement, "SAMPLE_STEPS", 1)
        patch.setattr(refinement, "FIRST_COUNTEREXAMPLES", 1)
        result = rs.infer(traces, options=rs.InferenceOptions(**chosen))
    again = decode(encode(result.machines))
    for kind in ("transition", "reward"):
        machine = getattr(result.machines, kind)
        assert_builds(machine)
        assert getattr(again, kind).decisions == machine.decisions


@pytest.mark.parametrize(
    "strategy", ["edsm", "rpni", "likelihood", "backtracking", "search", "exact"]
)
@pytest.mark.parametrize("supplement", [True, False])
@pytest.mark.parametrize("refine", [True, False])
def test_decisions_in_a_larger_world(strategy, supplement, refine, monkeypatch):
    monkeypatch.setattr(refinement, "SAMPLE_STEPS", 800)
    result = rs.infer(
        WORLD,
        strategy=strategy,
        options=rs.InferenceOptions(supplement=supplement, refine=refine, effort=0.01),
    )
    for machine in (result.machines.transition, result.machines.reward):
        assert_builds(machine)
        assert any(one.agreeing for one in machine.decisions)


def test_machines_of_all_traces_have_every_transition():
    for machine in (rs.infer(WORLD).machines.transition, rs.infer(WORLD).machines.reward):
        moves = (machine.transitions >= 0).sum() - machine.states * len(machine.trivial)
        assert len(machine.decisions) == moves


def test_an_update_that_learns_nothing_keeps_the_log():
    first = rs.infer(WORLD[:300])
    second = first.update(WORLD[300:])
    assert second.refinement.rounds == 1
    assert second.machines.transition.decisions == first.machines.transition.decisions
