"""The door to the compiled core: whatever comes in, it answers or refuses, and never crashes."""

import contextlib
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from interrupting import interrupt
from resolvent import _core
from resolvent.errors import OptionError
from resolvent.inference.engine import Limits, merge
from resolvent.inference.strategy import ENGINES
from resolvent.machines.build import StateLimitExceeded
from resolvent.preprocess.samples import ContradictoryRows, find_contradiction
from strategies import columns, sample_set, sample_sets

ROWS = [[(-1, 0, 0), (0, 0, 1)], [(0, 0, 1)]]
ALPHA, OUTPUT, BETA, OFFSETS = columns(sample_set(ROWS))


def ids(*values):
    return np.array(values, np.int32)


def offsets(*values):
    return np.array(values, np.int64)


def learn(alpha, output, beta, offsets, order="edsm"):
    return _core.learn(_core.build_history_tree(beta, offsets), alpha, output, order=order)


def first_contradiction(alpha, output, beta, offsets):
    return _core.find_contradiction(_core.build_history_tree(beta, offsets), alpha, output)


CALLS = {
    "learn": learn,
    "find_contradiction": first_contradiction,
    "SteppedFolding": _core.SteppedFolding,
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@every_call
def test_valid_arrays_are_accepted(call):
    call(ALPHA, OUTPUT, BETA, OFFSETS)
    call(ids(), ids(), ids(), offsets(0))
    call(ids(), ids(), ids(), offsets(0, 0, 0))


@every_call
@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize(
    "spoil",
    [
        lambda a: a.astype(np.float32),
        lambda a: a.astype(np.uint8),
        lambda a: a.astype(np.int16),
        lambda a: a.astype(np.float64),
        lambda a: a.astype(bool),
        lambda a: a.astype(object),
        lambda a: a.astype(complex),
        lambda a: a.astype("datetime64[s]"),
        lambda a: a.astype("timedelta64[s]"),
        lambda a: a.astype([("id", a.dtype)]),
        lambda a: a.astype("S4"),
        lambda a: a.astype(a.dtype.newbyteorder()),
        lambda a: a.reshape(-1, 1),
        lambda a: a[0],
        lambda a: a.tolist(),
        lambda a: None,
        lambda a: "alpha",
        lambda a: np.repeat(a, 2)[::2],
    ],
)
def test_arrays_of_another_type_or_shape_are_refused(call, place, spoil):
    arrays = [ALPHA, OUTPUT, BETA, OFFSETS]
    arrays[place] = spoil(arrays[place])
    with pytest.raises((TypeError, ValueError)):
        call(*arrays)


@every_call
@pytest.mark.parametrize("column", [np.array([1.5]), np.array([2**40]), np.array([2**40], "u8")])
def test_numbers_are_passed_to_the_core_unchanged(call, column):
    with pytest.raises((TypeError, ValueError)):
        call(column, ids(0), ids(0), offsets(0, 1))


@every_call
@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ((ids(0), ids(0, 0), ids(0, 0), offsets(0, 2)), "equally long"),
        ((ids(0, 0), ids(0), ids(0, 0), offsets(0, 2)), "equally long"),
        ((ids(0, 0), ids(0, 0), ids(0), offsets(0, 2)), "number of rows"),
        ((ids(0), ids(0), ids(0), offsets()), "begin with 0"),
        ((ids(0), ids(0), ids(0), offsets(1)), "begin with 0"),
        ((ids(0), ids(0), ids(0), offsets(-1, 1)), "begin with 0"),
        ((ids(0), ids(0), ids(0), offsets(0)), "end with the number of rows"),
        ((ids(0), ids(0), ids(0), offsets(0, 2)), "end with the number of rows"),
        ((ids(0), ids(0), ids(0), offsets(0, 2**62)), "end with the number of rows"),
        ((ids(0, 0), ids(0, 0), ids(0, 0), offsets(0, 2, 1, 2)), "must not fall"),
        ((ids(0), ids(0), ids(0), offsets(0, -(2**63), 1)), "must not fall"),
        ((ids(-2), ids(0), ids(0), offsets(0, 1)), "alpha holds an id below -1"),
        ((ids(0), ids(0), ids(-2), offsets(0, 1)), "beta holds an id below -1"),
        ((ids(0), ids(-1), ids(0), offsets(0, 1)), "needs an output"),
        ((ids(0), ids(-(2**31)), ids(0), offsets(0, 1)), "needs an output"),
    ],
)
def test_invalid_numbers_are_refused(call, arrays, message):
    with pytest.raises(ValueError, match=message):
        call(*arrays)


def test_an_output_without_an_alpha_does_not_matter():
    found = learn(ids(-1), ids(-7), ids(0), offsets(0, 1), order="rpni")
    assert found["output_value"].tolist() == []


any_array = hnp.arrays(
    dtype=st.sampled_from([np.int32, np.int64, np.uint32, np.float64, np.int8]),
    shape=hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=4),
)
near_ids = st.lists(st.integers(-3, 4), max_size=6).map(lambda values: ids(*values))
near_offsets = st.lists(st.integers(-1, 7), max_size=4).map(
    lambda values: offsets(*([0, *sorted(values)] if sum(values) % 3 else values))
)


@settings(deadline=None, max_examples=400)
@given(
    st.tuples(*[st.one_of(near_ids, any_array)] * 3, st.one_of(near_offsets, any_array)),
    st.sampled_from(sorted(CALLS)),
)
def test_no_array_crashes_the_core(arrays, name):
    with contextlib.suppress(TypeError, ValueError):
        CALLS[name](*arrays)


@settings(deadline=None, max_examples=200)
@given(
    st.integers(1, 6).flatmap(
        lambda n: st.tuples(
            *[st.lists(st.integers(-2, 3), min_size=n, max_size=n)] * 3, st.integers(0, n)
        )
    )
)
def test_near_misses_are_refused_and_the_rest_learned(drawn):
    alpha, output, beta, cut = drawn
    arrays = (ids(*alpha), ids(*output), ids(*beta), offsets(0, cut, len(alpha)))
    bad = min(alpha) < -1 or min(beta) < -1
    bad |= any(a >= 0 and o < 0 for a, o in zip(alpha, output, strict=True))
    if bad:
        with pytest.raises(ValueError, match=r"below -1|needs an output"):
            CALLS["learn"](*arrays)
    else:
        assert set(CALLS["learn"](*arrays)) & {"contradiction", "access"}


def test_the_order_must_be_known():
    with pytest.raises(ValueError, match="'telling' or 'rethink'"):
        learn(ALPHA, OUTPUT, BETA, OFFSETS, order="bfs")


@settings(deadline=None, max_examples=50)
@given(sample_sets())
def test_inputs_are_not_modified(samples):
    before = [column.copy() for column in columns(samples)]
    for column in columns(samples):
        column.flags.writeable = False
    for engine in ENGINES:
        try:
            merge(samples, engine=engine)
        except Exception as error:
            assert type(error).__name__ == "ContradictoryRows"  # noqa: PT017
    for column, copy in zip(columns(samples), before, strict=True):
        assert np.array_equal(column, copy)


def test_results_outlive_the_call():
    found = [merge(sample_set(ROWS)).access for _ in range(100)]
    assert all(access.tolist() == [0, 1] for access in found)


# ---- replay ----------------------------------------------------------------


def test_replay_by_hand():
    table = ids(1, -1, 0, 1)  # two states, two labels: 0 —0→ 1, 1 —0→ 0, 1 —1→ 1
    beta = ids(-1, 0, 1, 0, -1, 1, 0, 5, 0)
    states = _core.walk_states(table, 2, beta, offsets(0, 4, 7, 9))
    # From an unseen or unknown label on the state is -1, until the next trace.
    assert states.tolist() == [0, 1, 1, 0, 0, -1, -1, -1, -1]


def test_replay_without_labels():
    assert _core.walk_states(ids(), 0, ids(-1, -1, 3, -1), offsets(0, 1, 4)).tolist() == [
        0,
        0,
        -1,
        -1,
    ]


@pytest.mark.parametrize(
    ("table", "labels", "beta", "bounds", "message"),
    [
        (ids(0), -1, ids(), offsets(0), "at least 0"),
        (ids(0, 0, 0), 2, ids(), offsets(0), "one row of"),
        (ids(0), 0, ids(), offsets(0), "one row of"),
        (ids(), 2, ids(), offsets(0), "at least one state"),
        (ids(-2), 1, ids(), offsets(0), "below -1"),
        (ids(1), 1, ids(), offsets(0), "does not exist"),
        (ids(2**31 - 1), 1, ids(), offsets(0), "does not exist"),
        (ids(0), 1, ids(-2), offsets(0, 1), "below -1"),
        (ids(0), 1, ids(0), offsets(0, 2), "number of rows"),
        (ids(0), 1, ids(0, 0), offsets(0, 2, 1, 2), "must not fall"),
    ],
)
def test_replay_refuses_invalid_columns(table, labels, beta, bounds, message):
    with pytest.raises(ValueError, match=message):
        _core.walk_states(table, labels, beta, bounds)


@settings(deadline=None, max_examples=300)
@given(
    st.one_of(near_ids, any_array),
    st.integers(-(2**33), 2**33) | st.integers(-1, 4),
    st.one_of(near_ids, any_array),
    st.one_of(near_offsets, any_array),
)
def test_nothing_crashes_replay(table, labels, beta, bounds):
    with contextlib.suppress(TypeError, ValueError):
        _core.walk_states(table, labels, beta, bounds)


# ---- tally -----------------------------------------------------------------


def test_tally_by_hand():
    output, count, varies = _core.tally_outputs(ids(0, 2, 0, 2), ids(5, 6, 5, 7), 4)
    assert (output[0], output[1], output[3]) == (5, -1, -1)
    assert count.tolist() == [2, 0, 2, 0]
    assert varies.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("alpha", "output", "alphas"),
    [
        (ids(0), ids(), 1),
        (ids(1), ids(0), 1),
        (ids(-1), ids(0), 1),
        (ids(0), ids(-2), 1),
        (ids(), ids(), -1),
        (ids(0), ids(0), 0),
    ],
)
def test_tally_refuses_invalid_columns(alpha, output, alphas):
    with pytest.raises(ValueError, match=r"must|holds"):
        _core.tally_outputs(alpha, output, alphas)


@settings(deadline=None, max_examples=200)
@given(st.one_of(near_ids, any_array), st.one_of(near_ids, any_array), st.integers(-2, 6))
def test_nothing_crashes_tally(alpha, output, alphas):
    with contextlib.suppress(TypeError, ValueError):
        _core.tally_outputs(alpha, output, alphas)


# ---- codes -----------------------------------------------------------------


def test_used_codes_by_hand():
    assert _core.used_codes(ids(2, 0, 2), 4).tolist() == [1, 0, 1, 0]
    assert _core.used_codes(ids(), 2).tolist() == [0, 0]


def test_recode_by_hand():
    assert _core.recode(ids(2, 0, -1, 1), ids(7, -1, 9)).tolist() == [9, 7, -1, -1]
    assert _core.recode(ids(), ids()).tolist() == []


def test_distinct_pairs_by_hand():
    kept, place = _core.distinct_pairs(ids(1, 0, 1), ids(2, 1, 2), 2, 3)
    assert (kept.tolist(), place.tolist()) == ([1, 5], [1, 0, 1])
    kept, place = _core.distinct_pairs(ids(), ids(), 0, 0)
    assert (kept.tolist(), place.tolist()) == ([], [])


@pytest.mark.parametrize(
    "arguments",
    [
        (ids(0), ids(0, 0), 1, 1),
        (ids(1), ids(0), 1, 1),
        (ids(0), ids(1), 1, 1),
        (ids(-1), ids(0), 1, 1),
        (ids(0), ids(-1), 1, 1),
        (ids(), ids(), -1, 1),
        (ids(0), ids(0), 2**31, 1),
        (ids(0), ids(0), 2**16, 2**16),
        (ids(0), ids(0), 2**62, 2**62),
    ],
)
def test_pairs_out_of_range_are_refused(arguments):
    with pytest.raises(ValueError, match=r"equally long|out of range|at least 0|too many"):
        _core.distinct_pairs(*arguments)


@pytest.mark.parametrize("codes", [ids(-1), ids(0, 3), ids(2**31 - 1), ids(-(2**31))])
def test_codes_out_of_range_are_refused(codes):
    with pytest.raises(ValueError, match="out of range"):
        _core.used_codes(codes, 3)
    if codes[0] != -1:
        with pytest.raises(ValueError, match="out of range"):
            _core.recode(codes, ids(0, 1, 2))


@settings(deadline=None, max_examples=200)
@given(st.one_of(near_ids, any_array), st.one_of(near_ids, any_array), st.integers(-2, 6))
def test_nothing_crashes_on_codes(codes, table, size):
    with contextlib.suppress(TypeError, ValueError):
        _core.used_codes(codes, size)
    with contextlib.suppress(TypeError, ValueError):
        _core.recode(codes, table)


# ---- options ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "bfs"}, "unknown strategy 'bfs': choose one of auto, edsm, rpni"),
        ({"engine": "rust"}, "unknown engine 'rust': choose one of native, python"),
    ],
)
def test_options_that_cannot_be_honoured(options, message):
    with pytest.raises(OptionError, match=message):
        merge(sample_set(ROWS), **options)


def test_find_contradiction_returns_rows():
    assert find_contradiction(sample_set(ROWS)) is None
    found = find_contradiction(sample_set([[(0, 0, 1)], [(0, 0, 2)]]))
    assert found is not None
    assert (found.first, found.second) == (0, 1)


# ---- Ctrl-C ----------------------------------------------------------------

SLOW = """
import signal
import numpy as np
from resolvent import _core
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits "ignore"
random = np.random.default_rng(0)
rows, traces = 400_000, 400
beta = random.integers(0, 4, rows, dtype=np.int32)
alpha = random.integers(0, 3, rows, dtype=np.int32)
output = random.integers(0, 2, rows, dtype=np.int32)
alpha[np.arange(rows) % (rows // traces) < 12] = -1  # no two histories are equal beyond this
offsets = np.arange(0, rows + 1, rows // traces, dtype=np.int64)
print("ready", flush=True)
_core.learn(_core.build_history_tree(beta, offsets), alpha, output, order="{order}")
print("finished", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals work differently there")
@pytest.mark.parametrize("order", ["edsm", "rpni"])
def test_ctrl_c_ends_a_native_search_soon(order):
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW.format(order=order)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        assert process.poll() is None
        interrupt(process)
        out, err = process.communicate()
    finally:
        process.kill()
        process.communicate()
    assert "KeyboardInterrupt" in err
    assert out == ""


@pytest.mark.parametrize("order", ["edsm", "rpni"])
@given(samples=sample_sets())
def test_too_many_states_are_refused_by_both_engines_at_the_same_number(order, samples):
    try:
        found = merge(samples, order=order)
    except ContradictoryRows:
        return
    for engine in ENGINES:
        within = merge(samples, order, engine, Limits(most_states=found.states))
        assert within.events == found.events
        if found.states > 1:
            with pytest.raises(StateLimitExceeded):
                merge(samples, order, engine, Limits(most_states=found.states - 1))
