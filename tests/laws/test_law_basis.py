"""Predictions are observed, generalized or unseen exactly as a walk of the traces has them."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import state_at

import resolvent as rs
from resolvent import Basis
from resolvent.inference import refinement
from resolvent.machines.io.json import decode, encode
from resolvent.machines.tables import BASIS_BY_CODE
from strategies import infer_options, world_traces


def answered(machine, trace, t):
    if machine.predicts == "observation":
        return trace.observations[t + 1]
    if machine.predicts == "terminated":
        return trace.terminated and t == len(trace) - 1
    return trace.rewards[t]


def steps(machines, traces):
    """What each machine is asked at every step: kind, query, state, and the traces' answer.

    A query is the observation as the machine sees it, and the action.
    """
    for trace in traces:
        for t, action in enumerate(trace.actions):
            for kind, machine in machines.items():
                seen = trace.observations[t]
                if machine.supplemented:
                    seen = (seen, state_at(machines.transition, trace, t, machines.timing))
                state = state_at(machine, trace, t, machines.timing)
                yield kind, (seen, action), state, answered(machine, trace, t)


def asked_in(machines, traces):
    """Kind → query → state → the answers given there."""
    asked = {kind: defaultdict(lambda: defaultdict(set)) for kind in machines}
    for kind, query, state, answer in steps(machines, traces):
        asked[kind][query][state].add(answer)
    return asked


def level(by_state, state, constants):
    """The definition: asked here; or elsewhere, with one answer throughout; or neither.

    Without `constants` nothing is carried from one state to others.
    """
    if state in by_state:
        return Basis.OBSERVED
    if constants and len(set().union(*by_state.values())) == 1:
        return Basis.GENERALIZED
    return Basis.UNSEEN


def assert_known(machines, traces, constants=True):
    """Every state and query of every machine, the state that is not known included."""
    asked = asked_in(machines, traces)
    for kind, machine in machines.items():
        size = len(machine.observations) * len(machine.actions)
        queries = [machine.query(number) for number in range(size)]
        for state in [*range(machine.states), rs.UNSEEN]:
            found = [machine.basis(state, *query) for query in queries]
            assert found == [level(asked[kind][one], state, constants) for one in queries]
            for query, known in zip(queries, found, strict=True):
                told = machine.output(state, *query)
                sure = machine.output(state, *query, generalized=False)
                assert (told is rs.UNSEEN) == (known is Basis.UNSEEN)
                assert (sure is rs.UNSEEN) == (known is not Basis.OBSERVED)
                if known is not Basis.UNSEEN:
                    here = asked[kind][query]
                    assert {told} == (here[state] if state in here else set().union(*here.values()))
            code = -1 if state is rs.UNSEEN else state
            many = machine.basis_many(np.full(size, code, np.int32), np.arange(size))
            assert [BASIS_BY_CODE[one] for one in many] == found


@settings(deadline=None, max_examples=150)
@given(traces=world_traces(), options=infer_options)
def test_the_basis_of_predictions_equals_a_plain_walk(traces, options):
    machines = rs.infer(traces, options=rs.InferenceOptions(**options)).machines
    assert_known(machines, traces, constants=options["remove_redundant"])


@settings(deadline=None, max_examples=80)
@given(traces=world_traces(), options=infer_options)
def test_refined_machines_have_the_basis_of_all_traces(traces, options):
    """Not only of the few that they were learned from."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refinement, "SAMPLE_STEPS", 1)
        patch.setattr(refinement, "FIRST_COUNTEREXAMPLES", 1)
        machines = rs.infer(traces, options=rs.InferenceOptions(refine=True, **options)).machines
    assert_known(machines, traces, constants=options["remove_redundant"])


@settings(deadline=None, max_examples=80)
@given(traces=world_traces(), options=infer_options, data=st.data())
def test_updated_machines_have_the_basis_of_old_and_new_traces(traces, options, data):
    cut = data.draw(st.integers(1, len(traces)))
    result = rs.infer(traces[:cut], options=rs.InferenceOptions(**options))
    for number in range(cut, len(traces)):
        result = result.update(traces[number : number + 1])
    assert_known(result.machines, traces, constants=options["remove_redundant"])


@settings(deadline=None, max_examples=40)
@given(traces=world_traces(), options=infer_options)
def test_a_file_keeps_the_basis_of_predictions(traces, options):
    machines = decode(encode(rs.infer(traces, options=rs.InferenceOptions(**options)).machines))
    assert_known(machines, traces, constants=options["remove_redundant"])


@settings(deadline=None, max_examples=80)
@given(traces=world_traces(), fresh=world_traces(), options=infer_options)
def test_scores_count_by_basis(traces, fresh, options):
    """Steps that are observed, generalized and unseen, by the same walk of other traces."""
    machines = rs.infer(traces, options=rs.InferenceOptions(**options)).machines
    asked = asked_in(machines, traces)
    counts = Counter(
        (kind, level(asked[kind][query], state, options["remove_redundant"]))
        for kind, query, state, _ in steps(machines, fresh)
    )
    for kind, one in machines.score(fresh).items():
        assert one.right + one.wrong == counts[kind, Basis.OBSERVED]
        assert one.assumed_right + one.assumed_wrong == counts[kind, Basis.GENERALIZED]
        assert one.unseen == counts[kind, Basis.UNSEEN]
