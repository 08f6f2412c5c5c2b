"""Plans from traces with outliers, or with labels that do not determine the states."""

import pytest

import resolvent as rs
from outlier_traces import outliers
from resolvent.machines.augmented_state import StateUncertainty
from resolvent.worlds import House


@pytest.fixture(scope="module")
def damaged():
    return outliers(rs.collect(House(), episodes=300, seed=0), [7, 91, 200])


def test_traces_that_were_left_out_are_left_out_of_the_plan(damaged):
    result = rs.infer(damaged)
    assert result.outliers == (7, 91, 200)
    assert rs.plan(result, damaged).value == pytest.approx(0.95**5)


def test_machines_alone_do_not_know_the_outliers(damaged):
    with pytest.raises(
        rs.errors.ModelError, match=r"trace 7, step 0: .* the trace is an outlier to exclude"
    ):
        rs.plan(rs.infer(damaged).machines, damaged)


def test_hidden_starts_are_named_where_a_plan_fails():
    traces = rs.collect(House(), episodes=50, seed=0)
    start = {frozenset(): 0.5, frozenset({"key"}): 0.5}
    machines = rs.infer(traces).machines.replacing(state_uncertainty=StateUncertainty(starts=start))
    late = rs.TraceSet(
        rs.Trace(trace.observations[8:], trace.labels[8:], trace.actions[8:], trace.rewards[8:])
        for trace in traces
        if len(trace.actions) > 9
    )
    with pytest.raises(rs.errors.ModelError, match=r"hidden starts: .*mode='belief'"):
        rs.plan(machines, late)
