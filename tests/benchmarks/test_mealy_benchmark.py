"""Machines of many states by default: as few traces as they need, labels judged at little cost."""

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import resolvent as rs
from resolvent.inference import portfolio, refinement, task
from resolvent.inference.engine import merge
from resolvent.preprocess.reduction import Triviality, assess_labels
from resolvent.preprocess.samples import Histories, output_samples
from resolvent.preprocess.timing import LabelTiming

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "mealy.py"


@pytest.fixture(scope="module")
def mealy():
    spec = importlib.util.spec_from_file_location("mealy", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    sys.modules["mealy"] = module  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    yield module
    del sys.modules["mealy"]


def infer(traces, **options):
    return rs.infer(traces, options=rs.InferenceOptions(outputs=["output"], **options))


def test_walks_follow_the_machine(mealy):
    machine = mealy.Mealy.drawn(10, 0)
    given, told, offsets = machine.walks(3_000, 0)
    for begin, end in pairwise(offsets.tolist()):
        state = 0
        for row in range(begin, end):
            assert told[row] == machine.outputs[state, given[row]]
            state = machine.moves[state, given[row]]


def test_a_machine_is_recovered_only_with_all_its_transitions(mealy):
    machine = mealy.Mealy.drawn(10, 0)
    found = infer(machine.traces(30_000, 0)).machines["output"]
    assert machine.is_found(found)
    moves = machine.moves.copy()
    moves[3, 4] = (moves[3, 4] + 1) % 10
    assert not mealy.Mealy(moves, machine.outputs).is_found(found)


@pytest.mark.parametrize("engine", ["native", pytest.param("python", marks=pytest.mark.slow)])
def test_inference_stops_at_too_many_states(mealy, monkeypatch, engine):
    monkeypatch.setattr(refinement, "REFINE_ABOVE_STEPS", 1_000)
    monkeypatch.setattr(refinement, "SAMPLE_STEPS", 1_000)
    monkeypatch.setattr(refinement, "FEW_STATES", 8)
    asked = []

    def noted(samples, order, engine, limits):
        asked.append((len(samples.alpha), limits.most_states))
        return merge(samples, order, engine, limits)

    monkeypatch.setattr(portfolio, "merge", noted)
    machine = mealy.Mealy.drawn(15, 0)
    traces = machine.traces(40_000, 0)
    result = infer(traces, trivial=[], engine=engine)
    assert machine.is_found(result.machines["output"])
    steps, most = zip(*asked, strict=True)
    assert most[0] == 8
    assert steps[0] < 1_100
    assert steps[1] > 3.9 * steps[0]
    assert most[-1] is None or most[-1] >= 15


def test_small_machines_are_still_learned_from_few_traces(mealy, monkeypatch):
    monkeypatch.setattr(refinement, "REFINE_ABOVE_STEPS", 1_000)
    monkeypatch.setattr(refinement, "SAMPLE_STEPS", 20_000)
    machine = mealy.Mealy.drawn(5, 0)
    traces = machine.traces(100_000, 0)
    result = infer(traces)
    assert machine.is_found(result.machines["output"])
    assert result.refinement.traces < len(traces)


@pytest.fixture(scope="module")
def many_idle(mealy):
    machine = mealy.Mealy.drawn(5, 0, inputs=100, idle=90)
    return machine, machine.traces(200_000, 0)


def test_labels_are_tested_until_none_is_dropped(many_idle):
    _, traces = many_idle
    samples = output_samples(traces, Histories.of(traces, LabelTiming.CURRENT), "output")
    trivial = {
        int(next(iter(one.label))[1:])
        for one in assess_labels(samples)
        if one.triviality is Triviality.TRIVIAL and one.label
    }
    assert len(trivial) > 16
    assert min(trivial) >= 10  # the others change states


def test_testing_labels_takes_few_searches_in_large_trees(many_idle, monkeypatch):
    machine, traces = many_idle
    searches = []

    def counted(samples, *rest):
        searches.append(len(samples.histories.tree))
        return merge(samples, *rest)

    for module in (task, portfolio):
        monkeypatch.setattr(module, "merge", counted)
    monkeypatch.setattr(task, "COMPARED_IN_ALL", 1)
    result = infer(traces)
    assert machine.is_found(result.machines["output"])
    assert 1 <= len(searches) <= 2


def test_walks_are_the_same_for_the_same_seed(mealy):
    machine = mealy.Mealy.drawn(10, 3)
    one, same, other = (machine.walks(1_000, seed) for seed in (0, 0, 1))
    assert np.array_equal(one[0], same[0])
    assert not np.array_equal(one[0][:500], other[0][:500])
