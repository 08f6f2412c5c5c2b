"""Labels that step, but follow from what is seen: which are true, and how often they step."""

import numpy as np
import pytest

import resolvent as rs
from noisy_labels import with_label_noise, with_labels
from resolvent.noise.labels import LabelCounts, LabelDependence, denoise_labels
from resolvent.preprocess.timing import LabelTiming
from resolvent.replay.corpus import Corpus
from resolvent.traces import Trace, TraceSet
from resolvent.traces.source import InMemorySource
from resolvent.worlds import RandomWorld


def small_world(seed):
    return RandomWorld(world_seed=seed, size=9, labels=3, tm_states=3)


@pytest.fixture(scope="module")
def walks():
    return rs.collect(small_world(1), episodes=200, seed=1)


def true_events(world):
    return {seen: str(label) for seen, label in enumerate(world.grid.label_at) if label is not None}


@pytest.mark.parametrize(
    "rates",
    [{"missed": 0.05}, {"false": 0.02}, {"swapped": 0.05}, {"missed": 0.2, "false": 0.02}],
    ids=str,
)
def test_labels_of_the_world_and_rates_of_errors_are_estimated(walks, rates):
    denoised = denoise_labels(with_label_noise(walks, **rates))
    assert denoised.labeling.reads == "observation"
    visited = set(walks.observations)
    expected = {seen: name for seen, name in true_events(small_world(1)).items() if seen in visited}
    assert denoised.labeling.events == expected
    for kind, share in denoised.noise.as_dict().items():
        assert share == pytest.approx(rates.get(kind, 0), abs=0.015)
        assert (share == 0) == (kind not in rates)


def test_true_labels_need_no_correction(walks):
    assert denoise_labels(walks) is LabelDependence.EXACT


def test_labels_that_are_independent_are_not_denoised(walks):
    drawn = np.random.default_rng(0).integers(0, len(walks.labels), len(walks.label_codes))
    assert denoise_labels(with_labels(walks, drawn)) is LabelDependence.INDEPENDENT


def test_labels_may_depend_on_the_action():
    recorded = {"take": "key", "look": None}
    done = ["take", "look"] * 50
    labels = [None, *(recorded[action] for action in done)]
    labels[7] = None  # the key that was taken then was missed
    trace = Trace(["room"] * 101, labels, done)
    denoised = denoise_labels(TraceSet([trace]))
    assert denoised.labeling.reads == "action+observation"
    assert denoised.labeling.events == {("take", "room"): "key"}
    assert denoised.noise.missed == pytest.approx(1 / 50)


def test_a_false_label_at_an_observation_seen_twice():
    """If all errors are false labels, one of two different labels is false."""
    rooms = ["hall", "attic"] * 50
    labels = [None, "key"] * 50
    for step in range(0, 100, 10):
        labels[step] = "key"
    seen, recorded = [*rooms, "shed", "shed"], [*labels, "key", None]
    denoised = denoise_labels(TraceSet([Trace(seen, recorded, ["walk"] * 101)]))
    assert denoised.labeling.events == {"attic": "key"}


def test_labels_of_several_propositions():
    recorded = [None, {"key", "red"}] * 30
    recorded[5] = {"key"}
    denoised = denoise_labels(TraceSet([Trace(["hall", "attic"] * 30, recorded, ["walk"] * 59)]))
    assert denoised.labeling.events == {"attic": frozenset({"key", "red"})}
    assert denoised.noise.swapped == pytest.approx(1 / 30)


def test_the_first_label_counts_if_it_is_read():
    """The cue of the first observation never recurs: the action distinguishes the start."""
    first = Trace(["hall"] + ["hall", "attic"] * 20, ["cue", *[None, "key"] * 20], ["walk"] * 40)
    step = Trace(["hall"] + ["hall", "attic"] * 20, ["cue", *[None] * 40], ["walk"] * 40)
    traces = TraceSet([first] * 9 + [step])
    assert denoise_labels(traces).labeling.reads == "observation"
    denoised = denoise_labels(traces, timing=LabelTiming.CURRENT_WITH_INITIAL)
    assert denoised.labeling.events == {("hall",): "cue", ("walk", "attic"): "key"}


def test_a_stated_share_of_errors_is_used(walks):
    recorded = with_label_noise(walks, missed=0.05)
    free, stated = denoise_labels(recorded), denoise_labels(recorded, share=0.4)
    assert stated.log_evidence < free.log_evidence
    assert stated.labeling == free.labeling  # all that was seen often is beyond doubt


def test_counts_of_shards_add_up(walks):
    recorded = with_label_noise(walks, missed=0.1)
    timing = LabelTiming.CURRENT
    shards = Corpus(InMemorySource([recorded[:50], recorded[50:]]))
    assert denoise_labels(LabelCounts.of(shards, timing)) == denoise_labels(recorded)


def log_of(inputs, walks=40, steps=50):
    """A log with one observation, in which the label of a step is its input."""
    random = np.random.default_rng(0)
    drawn = random.integers(0, inputs, (walks, steps)).tolist()
    return rs.TraceSet(
        rs.Trace(["system"] * (steps + 1), [None, *(f"i{code}" for code in walk)], walk)
        for walk in drawn
    )


@pytest.mark.parametrize("inputs", [2, 30, 1_500])  # a fit with 1,500 labels takes minutes
def test_labels_that_are_the_inputs_of_a_log_are_exact(inputs):
    assert denoise_labels(log_of(inputs)) is LabelDependence.EXACT


def test_labels_with_a_source_each_may_be_wrong():
    # Every action comes once, so that labels follow from it whatever they are.
    steps = 40
    trace = rs.Trace(["hall", "attic"] * 20 + ["hall"], [None, "key"] * 20 + ["key"], range(steps))
    denoised = denoise_labels(rs.TraceSet([trace]))
    assert denoised.labeling.reads == "observation"
