import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import resolvent as rs
from resolvent import _core
from resolvent.replay.corpus import Corpus
from resolvent.traces.digest import TraceDigest, sample_traces, trace_hashes
from resolvent.traces.source import InMemorySource
from strategies import trace_sets

WALK = {
    "observations": ["hall", "stairs", "attic"],
    "labels": [None, None, "key"],
    "actions": ["up", "up"],
    "rewards": [0, 1],
    "columns": {"cost": [1, 2]},
}


def digest(*traces):
    return rs.TraceSet(traces).digest


def walk(**changed):
    return rs.Trace(**{**WALK, **changed})


def test_the_digest_tells_everything_that_a_trace_holds():
    other = [
        walk(),
        walk(observations=["hall", "attic", "attic"]),
        walk(observations=["hall", "stairs", "stairs"]),
        walk(labels=["key", None, "key"]),
        walk(labels=[None, None, None]),
        walk(labels=[None, None, {"key", "lamp"}]),
        walk(actions=["up", "down"]),
        walk(rewards=[1, 0]),
        walk(columns={"cost": [2, 1]}),
        walk(columns={"cost": [1.0, 2.0]}),
        walk(columns={"toll": [1, 2]}),
        walk(terminated=True),
        walk(truncated=True),
        walk(terminated=True, truncated=True),
    ]
    assert len({digest(one) for one in other}) == len(other)


def test_the_digest_tells_the_order_and_number_of_traces_and_where_they_end():
    one, other = walk(), walk(rewards=[1, 0])
    sets = [[], [one], [one, one], [one, other], [other, one], [one, other, one]]
    assert len({digest(*traces) for traces in sets}) == len(sets)
    steps = [rs.Trace([0, 0], [None, None], ["go"]) for _ in range(2)]
    assert digest(*steps) != digest(rs.Trace([0, 0, 0], [None] * 3, ["go"] * 2))


@given(st.lists(st.integers(0, 2**63 - 1), max_size=20), st.integers(1, 2**61 - 2))
def test_residues_are_polynomials_of_the_keys(keys, base):
    expected = 0
    for key in keys:
        expected = (expected * base + key) % (2**61 - 1)
    found = _core.key_residues(np.array(keys, np.int64), base, base)
    assert found[0] == expected
    assert all(0 <= one < 2**61 - 1 for one in found)


def test_a_base_that_is_too_large_is_refused():
    with pytest.raises(ValueError, match="below 2"):
        _core.key_residues(np.array([1]), 2**61, 3)


@given(traces=trace_sets(), data=st.data())
def test_digests_of_pieces_add_up_in_any_grouping(traces, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(traces)), min_size=2, max_size=2)))
    a, b, c = (
        TraceDigest.of(trace_hashes(piece), piece.steps)
        for piece in (traces[: cuts[0]], traces[cuts[0] : cuts[1]], traces[cuts[1] :])
    )
    assert ((a + b) + c).hexdigest(traces.values) == traces.digest
    assert (a + (b + c)).hexdigest(traces.values) == traces.digest


@pytest.mark.parametrize("rounding", [{}, {"reward": 0}])
@pytest.mark.parametrize(
    ("first", "second"),
    [([1, 2, 3], [0.5, 1.0, 2.0]), ([(1, 2), (3, 4), (1, 2)], [(1.0, 2), (3, 4.0), (True, 2.0)])],
)
def test_equal_values_of_other_types_in_another_piece_are_the_same(first, second, rounding):
    sets = [rs.TraceSet([walk(observations=seen)]) for seen in (first, second)]
    corpus = Corpus(InMemorySource(sets), rounding)
    assert corpus.digest == rs.TraceSet.concatenate(sets).digest
    grown = Corpus(InMemorySource(sets[:1]), rounding)
    assert grown.digest == sets[0].digest
    assert grown.extended(sets[1]).digest == corpus.digest


@given(trace_sets(), st.integers(0, 2**32), st.floats(0.01, 1))
def test_a_sample_does_not_depend_on_the_order(traces, seed, share):
    order = np.random.default_rng(seed).permutation(len(traces))
    assert (
        sample_traces(traces, share)[order].tolist()
        == sample_traces(traces.take(order), share).tolist()
    )


@given(trace_sets())
def test_only_equal_traces_have_the_same_hash(traces):
    hashes = trace_hashes(traces)
    for one in range(len(traces)):
        for other in range(one):
            assert (hashes[one] == hashes[other]) == (traces[one] == traces[other])


def test_a_sample_has_about_its_share():
    traces = rs.TraceSet(rs.Trace([0, number], [None, None], ["go"], [0]) for number in range(1000))
    assert sample_traces(traces, 0.25).sum() == 250
    assert sample_traces(traces, 1.0).all()
    assert sample_traces(traces[:3], 0.01).sum() == 1
    assert len(sample_traces(rs.TraceSet(), 0.5)) == 0
