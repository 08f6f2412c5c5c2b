"""Labels that lie, but follow from what is seen: which are true, and how often they lie."""

import numpy as np
import pytest

import resolvent as rs
from noisy_labels import lying, with_labels
from resolvent.noise.labels import (
    LabelTally,
    denoise_labels,
    labels_are_independent,
    labels_follow_exactly,
)
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import Trace, TraceSet
from resolvent.worlds import RandomWorld


def small_world(seed):
    return RandomWorld(world_seed=seed, size=9, labels=3, tm_states=3)


@pytest.fixture(scope="module")
def walks():
    return rs.collect(small_world(1), episodes=200, seed=1)


def true_events(world):
    return {seen: str(label) for seen, label in enumerate(world.grid.label_at) if label is not None}


@pytest.mark.parametrize(
    "lies",
    [{"missed": 0.05}, {"false": 0.02}, {"swapped": 0.05}, {"missed": 0.2, "false": 0.02}],
    ids=str,
)
def test_the_labels_of_the_world_and_the_rates_come_out(walks, lies):
    found = denoise_labels(lying(walks, **lies))
    assert found.labelling.reads == "observation"
    visited = set(walks.observations)
    expected = {seen: name for seen, name in true_events(small_world(1)).items() if seen in visited}
    assert found.labelling.events == expected
    for kind, share in found.noise.as_dict().items():
        assert share == pytest.approx(lies.get(kind, 0), abs=0.015)
        assert (share == 0) == (kind not in lies)


def test_true_labels_need_no_correction(walks):
    assert denoise_labels(walks) is None
    assert labels_follow_exactly(walks, LabelTiming.CURRENT)
    assert not labels_follow_exactly(lying(walks, missed=0.05), LabelTiming.CURRENT)


def test_labels_that_follow_from_nothing_are_not_corrected(walks):
    drawn = np.random.default_rng(0).integers(0, len(walks.labels), len(walks.label_codes))
    assert denoise_labels(with_labels(walks, drawn)) is None


def test_what_is_done_may_matter():
    told = {"take": "key", "look": None}
    done = ["take", "look"] * 50
    labels = [None, *(told[one] for one in done)]
    labels[7] = None  # the key that was taken then was missed
    trace = Trace(["room"] * 101, labels, done)
    found = denoise_labels(TraceSet([trace]))
    assert found.labelling.reads == "action+observation"
    assert found.labelling.events == {("take", "room"): "key"}
    assert found.noise.missed == pytest.approx(1 / 50)


def test_a_false_label_at_a_place_seen_twice():
    """Where lies are false labels only, one of two labels is taken for such."""
    rooms = ["hall", "attic"] * 50
    labels = [None, "key"] * 50
    for lie in range(0, 100, 10):
        labels[lie] = "key"
    seen, told = [*rooms, "shed", "shed"], [*labels, "key", None]
    found = denoise_labels(TraceSet([Trace(seen, told, ["walk"] * 101)]))
    assert found.labelling.events == {"attic": "key"}


def test_labels_of_several_propositions():
    told = [None, {"key", "red"}] * 30
    told[5] = {"key"}
    found = denoise_labels(TraceSet([Trace(["hall", "attic"] * 30, told, ["walk"] * 59)]))
    assert found.labelling.events == {"attic": frozenset({"key", "red"})}
    assert found.noise.swapped == pytest.approx(1 / 30)


def test_the_first_label_counts_if_it_is_read():
    """The cue of the first observation is never told later: the action tells them apart."""
    first = Trace(["hall"] + ["hall", "attic"] * 20, ["cue", *[None, "key"] * 20], ["walk"] * 40)
    lie = Trace(["hall"] + ["hall", "attic"] * 20, ["cue", *[None] * 40], ["walk"] * 40)
    traces = TraceSet([first] * 9 + [lie])
    assert denoise_labels(traces).labelling.reads == "observation"
    found = denoise_labels(traces, timing=LabelTiming.CURRENT_WITH_INITIAL)
    assert found.labelling.events == {("hall",): "cue", ("walk", "attic"): "key"}


def test_a_share_that_is_stated_is_the_one_that_counts(walks):
    told = lying(walks, missed=0.05)
    free, stated = denoise_labels(told), denoise_labels(told, share=0.4)
    assert stated.log_evidence < free.log_evidence
    assert stated.labelling == free.labelling  # all that was seen often is beyond doubt


def test_tallies_of_shards_add_up(walks):
    told = lying(walks, missed=0.1)
    timing = LabelTiming.CURRENT
    parts = [LabelTally.of(told[:50], timing), LabelTally.of(told[50:], timing)]
    assert denoise_labels(LabelTally.joined(parts)) == denoise_labels(told)
    assert denoise_labels(LabelTally.joined(parts[::-1])) == denoise_labels(told)


def log_of(inputs, walks=40, steps=50):
    """A log: nothing to see, and the label of a step is its input."""
    random = np.random.default_rng(0)
    drawn = random.integers(0, inputs, (walks, steps)).tolist()
    return rs.TraceSet(
        rs.Trace(["system"] * (steps + 1), [None, *(f"i{one}" for one in walk)], walk)
        for walk in drawn
    )


@pytest.mark.parametrize("inputs", [2, 30, 1_500])  # a fit with 1,500 labels takes minutes
def test_labels_that_are_the_inputs_of_a_log_are_true(inputs):
    tally = LabelTally.of(log_of(inputs), LabelTiming.CURRENT)
    assert denoise_labels(tally) is None
    assert not labels_are_independent(tally)


def test_labels_with_a_source_each_may_be_lies():
    # Every action comes once, so that labels follow from it whatever they are.
    steps = 40
    trace = rs.Trace(["hall", "attic"] * 20 + ["hall"], [None, "key"] * 20 + ["key"], range(steps))
    found = denoise_labels(LabelTally.of(rs.TraceSet([trace]), LabelTiming.CURRENT))
    assert found is not None
    assert found.labelling.reads == "observation"
