"""A time limit is kept between rounds and stages, with the best found so far."""

import gymnasium as gym
import pytest

import resolvent as rs
from resolvent.inference import refinement
from resolvent.inference.context import InferenceContext
from resolvent.preprocess.reduction import TrivialityBasis, assess_labels
from resolvent.preprocess.samples import Histories, output_samples
from resolvent.preprocess.timing import LabelTiming


@pytest.fixture(scope="module")
def traces():
    env = gym.make("resolvent/RandomWorld-v0", world_seed=1)
    return rs.collect(env, episodes=300, max_steps=100, seed=0)


def learning_from_few(monkeypatch):
    for name in ("SAMPLE_STEPS", "FIRST_COUNTEREXAMPLES", "RARE_TIMES"):
        monkeypatch.setattr(refinement, name, 1)


def time_for_one_round(monkeypatch):
    """Let time end once machines were learned; return what was learned."""
    learned = []
    infer_machines = refinement.infer_machines

    def noted(*arguments):
        learned.append(infer_machines(*arguments))
        return learned[-1]

    monkeypatch.setattr(refinement, "infer_machines", noted)
    monkeypatch.setattr(InferenceContext, "in_time", lambda context: not learned)
    return learned


def test_machines_inferred_before_the_time_limit_are_kept(monkeypatch, traces):
    learning_from_few(monkeypatch)
    whole = rs.infer(traces, options=rs.InferenceOptions(refine=True))
    assert whole.refinement.rounds > 1
    assert not whole.unfinished

    learned = time_for_one_round(monkeypatch)
    cut = rs.infer(traces, options=rs.InferenceOptions(refine=True))
    assert len(learned) == 1
    assert cut.refinement.rounds == 1
    assert cut.unfinished
    assert not cut.explains_all_traces
    assert cut.warnings[0].kind == "time-ran-out"
    assert cut.steps == traces.steps
    # What all traces show is part of the machines, though there was no time to learn from it.
    counted = sum(int(times.sum()) for times in cut.machines.transition.query_counts())
    assert counted > cut.refinement.steps
    score = cut.machines.score(traces)
    assert sum(counts.wrong for counts in score.values()) > 0


def test_a_result_that_explains_all_traces_is_finished(monkeypatch, traces):
    whole = rs.infer(traces, options=rs.InferenceOptions(refine=False))
    time_for_one_round(monkeypatch)
    found = rs.infer(traces, options=rs.InferenceOptions(refine=False))
    assert not found.unfinished
    assert found.machines.transition == whole.machines.transition


def test_labels_are_not_tested_without_time(traces):
    histories = Histories.of(traces, LabelTiming.CURRENT)
    samples = output_samples(traces, histories, "observation")
    tested = assess_labels(samples)
    untimed = assess_labels(samples, in_time=lambda: False)
    assert (
        [test.label for test in untimed] == [test.label for test in tested] == list(traces.labels)
    )
    assert any(test.basis is TrivialityBasis.EVIDENCE and test.label for test in tested)
    assert not any(test.basis is TrivialityBasis.EVIDENCE and test.label for test in untimed)
