import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from resolvent.traces import Trace, TraceSet
from resolvent.traces.sampling import sample_traces, trace_hashes
from strategies import trace_sets


@given(trace_sets(), st.integers(0, 2**32), st.floats(0.01, 1))
def test_the_order_of_traces_makes_no_difference(traces, seed, share):
    order = np.random.default_rng(seed).permutation(len(traces))
    assert (
        sample_traces(traces, share)[order].tolist()
        == sample_traces(traces.take(order), share).tolist()
    )


@given(trace_sets())
def test_equal_traces_and_only_they_share_a_fingerprint(traces):
    prints = trace_hashes(traces)
    for one in range(len(traces)):
        for other in range(one):
            assert (prints[one] == prints[other]) == (traces[one] == traces[other])


def test_about_the_share_that_was_asked_for():
    traces = TraceSet(Trace([0, number], [None, None], ["go"], [0]) for number in range(1000))
    assert sample_traces(traces, 0.25).sum() == 250
    assert sample_traces(traces, 1.0).all()
    assert sample_traces(traces[:3], 0.01).sum() == 1
    assert len(sample_traces(TraceSet(), 0.5)) == 0
