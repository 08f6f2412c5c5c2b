"""Law 3: the Python engine and the native engine return the same machine and event log.

For the orders that Python has only as a specification, `merge_oracle` takes its place.
"""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resolvent as rs
from merge_oracle import merge_in_python
from resolvent.inference import portfolio
from resolvent.inference.engine import merge
from resolvent.inference.merge_order import BestFirst
from resolvent.inference.state_merging import Promote, RedBlue, Watch, build_prefix_tree
from resolvent.inference.strategy import STRATEGIES
from resolvent.machines.io.json import encode
from resolvent.preprocess.samples import ContradictoryRows
from strategies import infer_options, sample_set, sample_sets, targets, world_traces

ORDERS = ["edsm", "rpni", "likelihood"]
HORIZON = STRATEGIES["edsm"].horizon


def outcome(samples, order, engine):
    """The rows of the contradiction, or every field of the automaton."""
    try:
        found = engine(samples, order)
    except ContradictoryRows as contradiction:
        return contradiction.first, contradiction.second
    return {field.name: getattr(found, field.name) for field in fields(found)}


def assert_same(samples, order):
    native, python = (outcome(samples, order, engine) for engine in (merge, merge_in_python))
    assert type(native) is type(python)
    if isinstance(native, tuple):
        assert native == python
        return native
    for name, value in native.items():
        if name in ("attempts", "work"):  # the native engine knows better which scores still hold
            continue
        if isinstance(value, np.ndarray):
            assert value.dtype == python[name].dtype, name
            assert value.tolist() == python[name].tolist(), name
        else:
            assert value == python[name], name
    return native


@pytest.mark.parametrize("order", ORDERS)
@settings(deadline=None, max_examples=250)
@given(samples=sample_sets())
def test_engines_agree_on_any_samples(order, samples):
    assert_same(samples, order)


@settings(deadline=None, max_examples=60)
@given(samples=sample_sets())
def test_engines_agree_on_backtracking_on_any_samples(samples):
    assert_same(samples, "backtracking")


@settings(deadline=None, max_examples=10)
@given(samples=sample_sets(labels=2, alphas=2, outputs=2, traces=8, length=12))
def test_engines_agree_on_backtracking_on_longer_traces(samples):
    assert_same(samples, "backtracking")


@pytest.mark.parametrize("order", ORDERS)
@settings(deadline=None, max_examples=60)
@given(samples=sample_sets(labels=2, alphas=2, outputs=2, traces=25, length=25))
def test_engines_agree_on_many_long_traces(order, samples):
    assert_same(samples, order)


@pytest.mark.parametrize("order", ORDERS)
@settings(deadline=None, max_examples=40)
@given(samples=sample_sets(labels=1, alphas=60, outputs=3, traces=10, length=80))
def test_engines_agree_on_states_with_indexed_outputs(order, samples):
    assert_same(samples, order)


@pytest.mark.parametrize("order", ORDERS)
@settings(deadline=None, max_examples=60)
@given(samples=sample_sets(labels=40, alphas=3, outputs=2, traces=30, length=8))
def test_engines_agree_on_states_with_many_children(order, samples):
    assert_same(samples, order)


@settings(deadline=None, max_examples=40)
@given(world_traces(), infer_options)
def test_engines_give_the_same_files_and_events(traces, options):
    native = rs.infer(traces, options=rs.InferenceOptions(**options))
    with pytest.MonkeyPatch.context() as patch:
        if options["strategy"] == "likelihood":
            patch.setattr(
                portfolio, "merge", lambda samples, order, *_: merge_in_python(samples, order.name)
            )
        else:
            options = {**options, "engine": "python"}
        python = rs.infer(traces, options=rs.InferenceOptions(**options))
    assert native.machines == python.machines
    assert encode(native.machines) == encode(python.machines)
    for machine in ("transition", "reward"):
        assert native.machines[machine].decisions == python.machines[machine].decisions
        mine, yours = getattr(native, machine), getattr(python, machine)
        assert (mine.merges, mine.promotions) == (
            yours.merges,
            yours.promotions,
        )


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "traces",
    [[], [[]], [[], []], [[(-1, -1, -1)]], [[(0, -1, -1)] * 3], [[(-1, 0, 0)] * 3]],
    ids=["no trace", "an empty trace", "two", "an empty row", "labels only", "answers only"],
)
def test_engines_agree_on_almost_empty_samples(order, traces):
    found = assert_same(sample_set(traces), order)
    assert len(found["access"]) == 1


@pytest.mark.parametrize("order", ORDERS)
def test_engines_name_the_same_first_contradiction(order):
    late = [(0, -1, -1), (1, 0, 0)]  # rows 0 1: history 0 1
    samples = sample_set(
        [
            late,
            [(0, -1, -1), (1, 0, 1)],  # rows 2 3: contradicts row 1
            [(1, 2, 0), (-1, 1, 0)],  # rows 4 5: history 1, which comes before 0 1
            [(1, 2, 1), (-1, 1, 5), (-1, 1, 6)],  # rows 6 7 8: alpha 1 comes before alpha 2
        ]
    )
    assert assert_same(samples, order) == (5, 7)


@pytest.mark.parametrize("order", ORDERS)
def test_engines_agree_with_ten_thousand_sparse_labels(order):
    """Only label 9,999 changes anything; the others loop."""
    random = np.random.default_rng(0)
    traces = []
    for _ in range(60):
        state, trace = 0, []
        for label in random.choice([3, 77, 4_000, 9_998, 9_999, *range(100, 9_000, 97)], 20):
            state ^= label == 9_999
            trace.append((int(label), 0, int(state)))
        traces.append(trace)
    found = assert_same(sample_set(traces, labels=10_000), order)
    assert len(found["access"]) == 2


@pytest.mark.parametrize("order", ORDERS)
def test_engines_agree_on_ids_at_the_limit_of_32_bits(order):
    last = 2**31 - 1
    rows = [(last, last, last), (0, last, 0), (last, last, last)] * 4
    samples = sample_set([rows], labels=0, alphas=0, outputs=0)
    found = assert_same(samples, order)
    # The root answers nothing, so what follows `last` joins it; what follows 0 does not.
    assert found["transition_state"].tolist() == [0, 0, 1]
    assert found["transition_label"].tolist() == [0, last, last]
    assert found["transition_target"].tolist() == [1, 0, 0]


@pytest.mark.parametrize("order", ORDERS)
def test_engines_agree_on_a_trace_of_20_000_labels(order):
    """A ring of three: long traces must not recurse."""
    rows = [(0, 0, step % 3) for step in range(1, 20_001)]
    found = assert_same(sample_set([rows]), order)
    assert len(found["access"]) == 3
    assert found["transition_target"].tolist() == [1, 2, 0]
    assert found["transition_count"].tolist() == [6667, 6667, 6666]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("silent", [0, 500, 600, 1500])
def test_engines_agree_if_the_evidence_is_far_ahead(order, silent):
    """A ring of three that is asked nothing for long: beyond where edsm looks to score a pair."""
    rows = [(0, 0 if step > silent else -1, step % 3) for step in range(1, silent + 300)]
    found = assert_same(sample_set([rows]), order)
    assert len(found["access"]) == 3
    assert found["transition_target"].tolist() == [1, 2, 0]


@pytest.mark.parametrize("order", ORDERS)
@settings(deadline=None, max_examples=15)
@given(target=targets(states=3, labels=2, alphas=2, outputs=2), seed=st.integers(0, 2**32))
def test_engines_agree_on_wide_trees_with_late_evidence(order, target, seed):
    random = np.random.default_rng(seed)
    traces = []
    for _ in range(25):
        state, trace = 0, []
        for step, label in enumerate(random.integers(0, len(target.labels), 90).tolist()):
            state = target.step[state][label]
            alpha = int(random.integers(len(target.alphas))) if step > 60 else -1
            trace.append((label, alpha, target.answer[state][alpha]))
        traces.append(trace)
    assert_same(sample_set(traces), order)


@pytest.mark.parametrize("beyond", [-1, 0, 1, 2])
def test_engines_agree_on_conflicts_at_the_horizon_of_edsm(beyond):
    """One line of labels, answered at its start and, differently, at its end.

    To loop its first label folds the whole line into the start, pair by pair, and the
    last pair conflicts. If edsm looks that far it knows at once; if not, it tries
    the pair once more in full. So the number of attempts shows how far it looks.
    """
    depth = HORIZON + beyond
    line = [(-1, 0, 0), *[(0, 1, 5)] * (depth - 1), (0, 0, 1)]
    found = assert_same(sample_set([line]), "edsm")
    first_promoted = next(event.blue for event in found["events"] if event.red is None)
    assert first_promoted == 1


def test_a_state_that_conflicts_beyond_the_horizon_may_fit_another_one():
    """A start, then two states in turn: 0 → 1 → 2 → 1; only late answers tell 1 from 2.

    Before those, more answers agree than edsm counts. So the third node seems to fit
    the start as well as it fits state 1, and the start comes first. In full that
    conflicts, and the node must go to state 1, not become a state of its own.
    """
    silent = HORIZON + 50
    # Alpha 2 tells the start from the second node at once; alpha 1 they answer alike.
    start, second = [(-1, 2, 0), (-1, 1, 5)], [(-1, 2, 1)]
    early = [(0, 1, 5) for _ in range(silent)]
    late = [(0, 0, step % 2) for step in range(silent + 1, silent + 300)]
    line = [*start, *early[:2], *second, *early[2:], *late]
    found = assert_same(sample_set([line]), "edsm")
    assert found["access"].tolist() == [0, 1, 2]
    assert found["transition_target"].tolist() == [1, 2, 1]


@pytest.mark.parametrize(("short", "first_merged"), [(-1, 2), (0, 1)])
def test_scores_are_counted_up_to_the_horizon_and_no_further(short, first_merged):
    """Two lines below the start, a… and b…, all of whose answers agree with it.

    The line of b is longer than edsm counts. One answer short of the horizon, the line
    of a loses to it; at the horizon they are equal, and a (node 1) comes before b.
    So the event log shows the horizon of either engine, to the answer.
    """
    a, b = HORIZON + short, HORIZON + 5
    traces = [[(-1, 0, 5)], [(0, 0, 5)] * a, [(1, 0, 5)] * b]
    found = assert_same(sample_set(traces), "edsm")
    assert found["events"][0].blue == first_merged


def test_edsm_repeats_only_folds_that_conflict_beyond_its_horizon():
    """The line above, cut to two decisions: attempts up to the first promotion, by hand."""
    for beyond, attempts in ((0, 1), (1, 2)):
        depth = HORIZON + beyond
        line = [(-1, 0, 0), *[(0, 1, 5)] * (depth - 1), (0, 0, 1)]
        search = RedBlue(build_prefix_tree(sample_set([line])), Watch(None, None))
        order = BestFirst(lambda fold: fold.agreeing, HORIZON)
        assert order.decide(search) == Promote(1)
        assert search.attempts == attempts


@pytest.mark.parametrize("order", ORDERS)
@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32))
def test_engines_agree_on_noise(order, seed):
    """Answers drawn at random, so that hardly anything merges and every tie-break shows."""
    random = np.random.default_rng(seed)
    told = {}
    traces = []
    for _ in range(12):
        history, trace = (), []
        for label in random.integers(0, 2, 10).tolist():
            history = (*history, label)
            answer = told.setdefault(history, int(random.integers(0, 2)))
            trace.append((label, 0, answer))
        traces.append(trace)
    assert_same(sample_set(traces), order)
