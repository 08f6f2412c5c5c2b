"""Reduction; the deletion of labels is compared with a few lines of Python that do the same."""

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import combinations, pairwise
from math import isclose, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resolvent import _core
from resolvent.errors import OptionError
from resolvent.preprocess.reduction import (
    ConstantOutputs,
    Triviality,
    TrivialityBasis,
    TrivialityTest,
    assess_labels,
    remove_redundant,
    remove_trivial,
    trivial_codes,
)
from resolvent.preprocess.samples import Histories, output_samples
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import NO_EVENT, Trace, TraceSet, Vocabulary
from strategies import sample_set, sample_sets
from worlds import random_world, with_decoys


def first_outputs(samples):
    """(history, alpha) → (output, first row), or None when the samples contradict each other."""
    outputs = {}
    beta = samples.beta.tolist()
    for start, stop in pairwise(samples.offsets.tolist()):
        history = ()
        for row in range(start, stop):
            history += (beta[row],) if beta[row] >= 0 else ()
            alpha, output = int(samples.alpha[row]), int(samples.output[row])
            if alpha >= 0 and outputs.setdefault((history, alpha), (output, row))[0] != output:
                return None
    return outputs


def histories_of(samples):
    met = {()}
    beta = samples.beta.tolist()
    for start, stop in pairwise(samples.offsets.tolist()):
        read = tuple(code for code in beta[start:stop] if code >= 0)
        met |= {read[:length] for length in range(len(read) + 1)}
    return met


def context(history, label):
    """The label before the last `label`, others like it left out; plus one, 0 for none."""
    before = history[: len(history) - 1 - history[::-1].index(label)]
    kept = [code for code in before if code != label]
    return kept[-1] + 1 if kept else 0


def deleted(outputs, label):
    """What `_core.delete_labels` says, from its definition: contradictory?, agreements, bits."""
    groups = defaultdict(list)
    for (history, alpha), (output, _) in outputs.items():
        groups[tuple(code for code in history if code != label), alpha].append((history, output))
    if any(len({output for _, output in group}) > 1 for group in groups.values()):
        return None
    agreeing, counts = Counter(), Counter()
    for (_, alpha), (output, _) in outputs.items():
        agreeing[alpha, output] += 1
        counts[alpha] += 1
    agreements, bits = 0, Counter()
    for (_, alpha), group in groups.items():
        says = log2(counts[alpha] / agreeing[alpha, group[0][1]])
        if len(group) > 1 and says > 0:
            agreements += len(group) - 1
            for history, _ in group:
                if label in history:
                    bits[context(history, label)] += says
    return agreements, bits


@settings(deadline=None, max_examples=300)
@given(samples=sample_sets(), data=st.data())
def test_a_deletion_is_weighed_as_defined(samples, data):
    outputs = first_outputs(samples)
    labels = len(samples.labels)
    label = data.draw(st.integers(0, labels - 1))
    columns = samples.histories.tree, samples.alpha, samples.output
    if outputs is None:
        with pytest.raises(ValueError, match="contradict"):
            _core.delete_labels(*columns, [label], labels)
        return
    all_results = _core.delete_labels(*columns, list(range(labels)), labels)
    rows, agreements, bits, occurrences = all_results[label]
    expected = deleted(outputs, label)
    assert (rows is not None) == (expected is None)
    if rows is not None:
        one, other = rows
        assert samples.alpha[one] == samples.alpha[other]
        assert samples.output[one] != samples.output[other]
        assert read_at(samples, one, label) == read_at(samples, other, label)
        return
    assert agreements == expected[0]
    assert all(isclose(bits[at], expected[1][at], abs_tol=1e-9) for at in range(labels + 1))
    ends = Counter(context(h, label) for h in histories_of(samples) if h and h[-1] == label)
    assert occurrences.tolist() == [ends[at] for at in range(labels + 1)]


def read_at(samples, row, label):
    start = max(int(start) for start in samples.offsets[:-1] if start <= row)
    return [code for code in samples.beta[start : row + 1].tolist() if code not in (-1, label)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"named": [5]}, "no such label"),
        ({"labels": 1}, "out of range"),
        ({"alpha": np.zeros(1, np.int32)}, "equally long"),
        ({"output": np.array([-1, 0], np.int32)}, "needs an output"),
        ({"alpha": np.array([-2, 0], np.int32)}, "needs an output"),
    ],
)
def test_the_core_refuses_invalid_columns(change, words):
    samples = sample_set([[(0, 0, 0), (1, 0, 0)]])
    given = {
        "alpha": samples.alpha,
        "output": samples.output,
        "named": [0],
        "labels": 2,
        **change,
    }
    with pytest.raises(ValueError, match=words):
        _core.delete_labels(samples.histories.tree, **given)


# ---- triviality of labels ----------------------------------------------------


def label_tests(traces, timing=LabelTiming.CURRENT, **options):
    samples = output_samples(traces, Histories.of(traces, timing), "observation")
    return {one.label: one for one in assess_labels(samples, **options)}


def walk(observations, labels):
    steps = len(observations) - 1
    return Trace(observations, labels, ["go"] * steps, [0] * steps)


LAMP = TraceSet([walk("abab", [None, None, None, None]), walk("abac", [None, None, "key", None])])


def test_a_contradiction_proves_a_label_needed_and_is_named():
    traces = TraceSet([walk("ab", [None, None]), walk("bac", [None, "key", None])])
    test = label_tests(traces)[frozenset({"key"})]
    assert (test.triviality, test.witness) == (Triviality.NEEDED, ((0, 0), (1, 1)))
    traces = TraceSet([walk("xx", [None, None]), *traces])
    only = np.array([False, True, True])
    assert label_tests(traces, among=only)[frozenset({"key"})].witness == ((1, 0), (2, 1))


def test_no_event_is_trivial_unless_proven_needed():
    assert label_tests(LAMP)[NO_EVENT] == TrivialityTest(
        NO_EVENT, Triviality.TRIVIAL, TrivialityBasis.DEFAULT
    )
    waiting = TraceSet([walk("aab", [None, None, None])])
    test = label_tests(waiting)[NO_EVENT]
    assert (test.triviality, test.witness) == (Triviality.NEEDED, ((0, 0), (0, 1)))


def test_traces_that_contradict_each_other_anyway_prove_nothing():
    traces = TraceSet([walk("ab", [None, "key"]), walk("ac", [None, "key"])])
    assert {one.triviality for one in label_tests(traces).values() if one.label} == {
        Triviality.UNDECIDED
    }
    traces = TraceSet([walk("ab", ["key", "key"]), walk("ac", ["key", "key"])])
    assert label_tests(traces)[frozenset({"key"})].triviality is Triviality.UNDECIDED


def test_a_label_without_evidence_is_kept():
    traces = TraceSet([walk("abc", [None, "key", None])])
    test = label_tests(traces)[frozenset({"key"})]
    assert (test.triviality, test.agreements) == (Triviality.UNDECIDED, 0)


@pytest.fixture(scope="module")
def decoyed():
    return with_decoys(random_world(0, size=9, labels=3, tm_states=4), 2)


def test_only_decoys_are_trivial(decoyed):
    tests = label_tests(decoyed.rollouts(600, seed=0))
    trivial = {label for label, one in tests.items() if one.triviality is Triviality.TRIVIAL}
    assert trivial == {NO_EVENT, frozenset({"3"}), frozenset({"4"})}
    assert all(tests[frozenset({name})].triviality is Triviality.NEEDED for name in "012")


def test_only_no_event_is_tested_on_request(decoyed):
    tests = label_tests(decoyed.rollouts(600, seed=0), beyond_no_event=False)
    assert [one.label for one in tests.values() if one.triviality is Triviality.TRIVIAL] == [
        NO_EVENT
    ]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("episodes", [10, 30, 100, 300])
def test_no_needed_label_is_dropped_with_few_traces(seed, episodes):
    world = with_decoys(random_world(seed, size=9, labels=4, tm_states=5), 1, seed)
    for label, one in label_tests(world.rollouts(episodes, seed)).items():
        code = int(next(iter(label), 4))
        loops = all(row[code] == state for state, row in enumerate(world.tm_transitions))
        assert loops or one.triviality is not Triviality.TRIVIAL


def test_a_label_that_matters_in_one_rare_state_only_is_not_dropped():
    """It agrees hundreds of times before anything speaks for it."""
    for seed in range(4):
        world = random_world(seed, size=15, labels=5, tm_states=7)
        table = [[state, *row[1:]] for state, row in enumerate(world.tm_transitions)]
        table[6][0] = 0
        rare = replace(world, tm_transitions=tuple(map(tuple, table)))
        for episodes in (100, 300, 1000):
            tests = label_tests(rare.rollouts(episodes, seed, max_steps=300))
            assert tests[frozenset({"0"})].triviality is not Triviality.TRIVIAL


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32), samples=sample_sets(traces=5, length=8))
def test_the_order_of_traces_and_repeats_do_not_change_the_tests(seed, samples):
    order = np.random.default_rng(seed).permutation(len(samples.offsets) - 1).tolist()
    rows = [
        list(
            zip(
                *(c[a:b].tolist() for c in (samples.beta, samples.alpha, samples.output)),
                strict=True,
            )
        )
        for a, b in pairwise(samples.offsets.tolist())
    ]
    size = {"labels": len(samples.labels), "alphas": len(samples.alpha_keys)}
    again = sample_set([rows[at] for at in order] * 2, outputs=len(samples.outputs), **size)

    def results(samples):
        return [(one.triviality, one.agreements) for one in assess_labels(samples)]

    assert results(again) == results(samples)


def test_a_contradiction_stays_when_more_labels_are_deleted():
    """Why labels can be judged one at a time: none is trivial only together with others."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        rows = [[(int(rng.integers(3)), 0, int(rng.integers(2))) for _ in range(4)] for _ in "ab"]
        samples = sample_set(rows, labels=3, outputs=2)
        outputs = first_outputs(samples)
        if outputs is None:
            continue
        for one, other in combinations(range(3), 2):
            if deleted(outputs, one) is None:
                merged = {
                    (tuple(c for c in h if c not in (one, other)), a): set() for h, a in outputs
                }
                for (h, a), (output, _) in outputs.items():
                    merged[tuple(c for c in h if c not in (one, other)), a].add(output)
                assert any(len(outputs) > 1 for outputs in merged.values())


def test_alphas_with_one_output_are_removed():
    # Alpha 0 always answers 5; alpha 1 answers 5 and 6; alpha 2 never occurs; alpha 3 once.
    samples = sample_set(
        [[(0, 0, 5), (1, 1, 5)], [(-1, 0, 5), (0, 1, 6), (0, 3, 2)]],
        alphas=5,
    )
    reduced, constants = remove_redundant(samples)
    assert reduced.alpha.tolist() == [-1, 1, -1, 1, -1]
    assert constants.alpha.tolist() == [0, 3]
    assert constants.output.tolist() == [5, 2]
    assert constants.count.tolist() == [2, 1]
    assert reduced.alpha.dtype == constants.alpha.dtype == constants.output.dtype == np.int32
    assert constants.count.dtype == np.int64
    for column in ("beta", "output", "offsets"):
        assert np.array_equal(getattr(reduced, column), getattr(samples, column))


def test_the_original_samples_do_not_change():
    samples = sample_set([[(0, 0, 0), (0, 1, 1), (0, 1, 0)]])
    remove_redundant(samples)
    assert samples.alpha.tolist() == [0, 1, 1]


@pytest.mark.parametrize("outputs", [[0, 1, 0], [1, 1, 0], [0, 1, 1]])
def test_one_different_output_keeps_an_alpha(outputs):
    reduced, constants = remove_redundant(sample_set([[(0, 0, output) for output in outputs]]))
    assert reduced.alpha.tolist() == [0, 0, 0]
    assert len(constants.alpha) == 0


def test_no_rows():
    reduced, constants = remove_redundant(sample_set([], alphas=3))
    assert reduced.alpha.tolist() == []
    assert constants.alpha.tolist() == []


def test_the_record_of_nothing():
    nothing = ConstantOutputs.nothing()
    assert (len(nothing.alpha), len(nothing.output), len(nothing.count)) == (0, 0, 0)


LABELS = Vocabulary(map(frozenset, [(), ("door",), ("key",), ("door", "key")]))
EVENTS = Vocabulary(map(frozenset, [("door",), ("key",)]))


@pytest.mark.parametrize(
    ("named", "codes"),
    [
        ((), (0,)),
        (("key",), (0, 2)),
        (({"key", "door"}, "door"), (0, 1, 3)),
        (("door & key",), (0, 3)),
        (("no event", frozenset()), (0,)),
        ((["key"], ("key",)), (0, 2)),
    ],
)
def test_labels_are_named_as_sets_or_as_they_print(named, codes):
    assert trivial_codes(LABELS, named) == codes


def test_no_event_is_trivial_only_where_it_occurs():
    assert trivial_codes(EVENTS) == ()
    assert trivial_codes(EVENTS, ["key"]) == (1,)


@pytest.mark.parametrize("name", ["kye", {"kye"}])
def test_a_label_that_never_occurs_is_refused(name):
    with pytest.raises(OptionError, match=r"'kye' never occurs.*labels are: door, key"):
        trivial_codes(EVENTS, [name])


def test_trivial_labels_are_blanked_out_and_nothing_else():
    samples = sample_set([[(0, 0, 0), (2, 1, 1), (-1, 0, 1)], [(1, 0, 0), (2, -1, -1)]])
    reduced = remove_trivial(samples.histories, [0, 2])
    assert reduced.beta.tolist() == [-1, -1, -1, 1, -1]
    assert reduced.beta.dtype == np.int32
    assert samples.beta.tolist() == [0, 2, -1, 1, 2]
    assert np.array_equal(reduced.offsets, samples.offsets)
    assert reduced.labels == samples.labels


def test_no_trivial_labels_change_nothing():
    samples = sample_set([[(0, 0, 0), (-1, 1, 1)]])
    assert remove_trivial(samples.histories, ()).beta.tolist() == [0, -1]


def test_all_labels_trivial():
    samples = sample_set([[(0, 0, 0), (1, 1, 1)]])
    assert remove_trivial(samples.histories, (0, 1)).beta.tolist() == [-1, -1]


def test_a_text_that_two_labels_print_as_is_refused():
    labels = Vocabulary([frozenset({"a & b"}), frozenset({"a", "b"})])
    with pytest.raises(OptionError, match="in two ways: name it as a set"):
        trivial_codes(labels, ["a & b"])
    assert trivial_codes(labels, [{"a", "b"}]) == (1,)
