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

from automata import unexplained
from interrupting import interrupt
from resolvent import _core
from resolvent._util.parallel import Progress
from resolvent.errors import OptionError, TimeLimitReached
from resolvent.inference.engine import Limits, merge
from resolvent.inference.state_merging import Watch
from resolvent.inference.strategy import ENGINES
from resolvent.machines.build import StateLimitExceeded, automaton_from_columns
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
    return _core.find_conflict(_core.build_history_tree(beta, offsets), alpha, output)


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
def test_nearly_valid_arrays_are_refused_and_valid_ones_accepted(drawn):
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
def test_invalid_options_are_refused(options, message):
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


# Label 0 leads from the root to a state that answers 1, and back; label 1 is not settled.
SAMPLES = sample_set(
    [
        [(0, 0, 1), (0, 0, 0), (0, 0, 1)],
        [(1, 0, 1), (0, 0, 0), (0, 0, 1)],
        [(1, 0, 1), (1, 0, 0)],
    ]
)


def nodes(samples):
    """The number of each history's node."""
    tree = samples.histories.tree
    return {tuple(tree.history(node)): node for node in range(len(tree))}


def completed(samples, access, settled):
    """The automaton of a search that was stopped with these states."""
    tree = samples.histories.tree
    columns = _core.complete(
        tree,
        samples.alpha,
        samples.output,
        np.array(access, np.int32),
        np.array(settled, np.int32),
    )
    return automaton_from_columns(columns, len(tree))


def test_undecided_nodes_join_the_state_with_most_agreement():
    node = nodes(SAMPLES)
    settled = [-1] * len(node)
    for history, state in {(): 0, (0,): 1, (0, 0): 0, (0, 0, 0): 1}.items():
        settled[node[history]] = state
    found = completed(SAMPLES, [0, node[0,]], settled)
    assert not found.finished
    assert found.states == 2
    moves = zip(found.transition_state.tolist(), found.transition_label.tolist(), strict=True)
    table = dict(zip(moves, found.transition_target.tolist(), strict=True))
    # After label 1 it answers 1, then after 0 it answers 0, then 1: as state 1 does.
    assert table == {(0, 0): 1, (1, 0): 0, (0, 1): 1, (1, 1): 0}
    assert found.wrong == 0
    assert unexplained(found, SAMPLES) == []
    assert [(event.red, event.blue) for event in found.events] == [
        (node[0,], node[1,]),
        (0, node[1, 1]),
    ]
    assert all(event.folded >= 1 for event in found.events)


def test_states_predict_the_most_frequent_output():
    samples = sample_set([[(0, 0, 1), (0, 0, 1), (0, 0, 0)]])
    found = completed(samples, [0], [0, -1, -1, -1])
    assert found.states == 1
    assert found.output_value.tolist() == [1]
    assert found.wrong == len(unexplained(found, samples)) == 1


def test_of_equally_frequent_outputs_the_lowest_is_predicted():
    samples = sample_set([[(0, 0, 1), (0, 0, 0)]])
    assert completed(samples, [0], [0, -1, -1]).output_value.tolist() == [0]


@settings(deadline=None)
@given(samples=sample_sets(), cut=st.integers(0, 8))
def test_wrong_rows_are_counted_wherever_merging_stops(samples, cut):
    """Settled is what the first states of a finished machine have, and what is above it."""
    if find_contradiction(samples) is not None:
        return
    whole = merge(samples)
    kept = min(cut, whole.states - 1) + 1
    table = {
        (state, label): target
        for state, label, target in zip(
            whole.transition_state.tolist(),
            whole.transition_label.tolist(),
            whole.transition_target.tolist(),
            strict=True,
        )
    }
    settled = []
    for node in range(len(samples.histories.tree)):
        state = 0
        for label in samples.histories.tree.history(node):
            state = -1 if state < 0 else table[state, label]
            if state >= kept:
                state = -1
        settled.append(state)
    found = completed(samples, whole.access[:kept].tolist(), settled)
    assert found.states == kept
    assert found.wrong == len(unexplained(found, samples))
    if kept == whole.states:
        assert found.wrong == 0


@pytest.mark.parametrize(
    ("access", "settled", "words"),
    [
        ([0], [0, 0], "the state of each node"),
        ([0], [0, 1, -1], None),
        ([0], [-1, -1, -1], "the first node"),
        ([0], [0, -1, 0], "above a settled node"),
        ([7], [0, -1, -1], None),
    ],
)
def test_invalid_columns_are_refused(access, settled, words):
    samples = sample_set([[(0, 0, 1), (0, 0, 1)]])
    with pytest.raises(ValueError, match=words):
        completed(samples, access, settled)


def test_a_contradiction_is_raised_despite_the_time_limit():
    samples = sample_set([[(0, 0, 1)], [(0, 0, 0)]])
    with pytest.raises(ContradictoryRows):
        merge(samples, limits=Limits(1e-9))


both_engines = pytest.mark.parametrize("engine", ["native", "python"])
both_orders = pytest.mark.parametrize("order", ["edsm", "rpni"])


@pytest.fixture(scope="module")
def slow_samples():
    """Answers at random on random traces: hardly anything merges, and the search takes ages."""
    random = np.random.default_rng(0)
    traces = []
    for _ in range(120):
        labels, answers = random.integers(0, 4, 300), random.integers(0, 2, 300)
        # No two traces share a history as long as ten labels, so the answers cannot clash.
        trace = [
            (int(label), 0 if step > 10 else -1, int(answer))
            for step, (label, answer) in enumerate(zip(labels, answers, strict=True))
        ]
        traces.append(trace)
    return sample_set(traces)


@both_engines
@both_orders
def test_undecided_nodes_are_merged_cheaply_when_time_is_up(slow_samples, engine, order):
    found = merge(slow_samples, order, engine, Limits(0.005))
    assert not found.finished
    assert 1 <= found.states < found.tree_nodes
    assert len(unexplained(found, slow_samples)) == found.wrong > 0


@both_engines
def test_progress_is_reported_and_grows(slow_samples, engine):
    reports = []

    def listen(progress):
        reports.append(progress)
        time.sleep(0.05)  # so that the next check reports again
        if len(reports) == 5:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        merge(slow_samples, "rpni", engine, Limits(listener=listen))
    assert all(isinstance(report, Progress) for report in reports)
    assert all(0 < report.done <= report.total for report in reports[1:])
    for name in ("states", "done"):
        values = [getattr(report, name) for report in reports]
        assert values == sorted(values)
    assert reports[-1].states >= 1
    assert reports[-1].undecided >= 1


@both_engines
@both_orders
def test_exceptions_of_a_listener_pass_through(slow_samples, engine, order):
    class Enough(Exception):  # noqa: N818
        pass

    def listener(progress):
        raise Enough(progress.total)

    with pytest.raises(Enough) as caught:
        merge(slow_samples, order, engine, Limits(listener=listener))
    assert caught.value.args[0] >= 0


@both_engines
def test_a_limit_that_is_not_reached_changes_nothing(engine):
    samples = sample_set([[(0, 0, 1), (0, 0, 0), (0, 0, 1)]])
    free, limited = (merge(samples, engine=engine, limits=Limits(limit)) for limit in (None, 60))
    assert free.events == limited.events
    assert free.attempts == limited.attempts


def test_the_watch_reports_at_intervals(monkeypatch):
    clock = iter([0.0, 0.01, 0.06, 0.07, 0.2, 1.01])
    monkeypatch.setattr("resolvent.inference.state_merging.time.monotonic", lambda: next(clock))
    reports = []
    watch = Watch(1.0, reports.append)
    for number in range(4):
        watch.check(Progress(number, 0, 0, 0))
    assert [report.states for report in reports] == [1, 3]
    with pytest.raises(TimeLimitReached):
        watch.check(Progress(9, 0, 0, 0))
