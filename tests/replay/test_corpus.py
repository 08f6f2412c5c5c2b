from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resolvent as rs
from resolvent.errors import StepLocation
from resolvent.replay import scan
from resolvent.replay.corpus import Corpus
from resolvent.traces.source import InMemorySource, JoinedSource
from strategies import trace_sets
from worlds import random_world

WORLD = random_world(1, size=9, labels=3, tm_states=3)


def in_pieces(traces, cuts):
    bounds = zip([0, *cuts], [*cuts, len(traces)], strict=True)
    return [traces[start:stop] for start, stop in bounds if stop > start]


def saved(folder: Path, sets):
    folder.mkdir()
    for number, traces in enumerate(sets):
        traces.save(folder / f"part-{number}.parquet")
    return rs.scan_traces(folder)


@settings(deadline=None)
@given(traces=trace_sets(), data=st.data())
def test_pieces_have_the_alphabets_and_the_digest_of_the_whole(traces, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(traces)), max_size=3)))
    corpus = Corpus(InMemorySource(in_pieces(traces, cuts)))
    assert corpus.alphabets.values == dict(traces.values)
    assert (corpus.traces, corpus.steps) == (len(traces), traces.steps)
    assert corpus.digest == traces.digest


@settings(deadline=None)
@given(traces=trace_sets(), data=st.data())
def test_fetching_gives_the_traces_with_these_numbers(traces, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(traces)), max_size=3)))
    corpus = Corpus(InMemorySource(in_pieces(traces, cuts)))
    wanted = sorted(data.draw(st.sets(st.integers(0, len(traces) - 1), min_size=1)))
    fetched = corpus.fetch(np.array(wanted))
    assert [*fetched] == [traces[number] for number in wanted]


def test_a_folder_gives_what_memory_gives(tmp_path):
    sets = [WORLD.rollouts(30, seed) for seed in range(4)]
    traces = rs.TraceSet.concatenate(sets)
    there, here = Corpus(saved(tmp_path / "f", sets)), Corpus(InMemorySource(sets))
    alone = Corpus(InMemorySource([traces]))
    for steps in (1, 500, 3000):
        numbers = [one.sample(steps).tolist() for one in (there, here, alone)]
        assert numbers[0] == numbers[1] == numbers[2]
    assert there.digest == here.digest == traces.digest
    for corpus in (there, here):
        sample = corpus.sample(500)
        assert corpus.fetch(sample) == traces.take(sample)
        again = np.unique([3, 40, 41, 119, *sample])
        assert corpus.fetch(again) == traces.take(again)
    assert str(there.location(45, 6)).endswith("part-1.parquet, trace 15, step 6")
    assert here.location(45, 6) == StepLocation(45, 6, "trace set 1", 15)
    assert alone.location(45, 6) == StepLocation(45, 6)


def test_the_sample_is_read_with_the_survey_and_no_file_twice(tmp_path, monkeypatch):
    folder = saved(tmp_path / "f", [WORLD.rollouts(30, seed) for seed in range(3)])
    corpus = Corpus(folder, pool_steps=500)
    sample = corpus.sample(10_000)
    assert len(sample) < 30
    read = []
    real = corpus.shards.read
    monkeypatch.setattr(corpus.shards, "read", lambda number: read.append(number) or real(number))
    corpus.fetch(sample)
    assert read == []
    more = np.setdiff1d(corpus.all, sample)[:1]
    for _ in range(2):
        corpus.fetch(np.union1d(sample, more))
    assert len(read) == 1


def test_a_shard_that_is_scanned_twice_gives_each_trace_once(tmp_path, monkeypatch):
    monkeypatch.setattr(scan, "LEAST_STEPS", 1)
    different = WORLD.rollouts(6, seed=4)
    repeated = rs.TraceSet.concatenate([different[:1]] * 9 + [different[3:]])
    sets = [different[:3], repeated]
    corpus = Corpus(saved(tmp_path / "f", sets), pool_steps=60)
    traces = rs.TraceSet.concatenate(sets)
    for numbers in ([1], [0, 1, 2], [*range(len(traces))]):
        assert corpus.fetch(np.array(numbers)) == traces.take(numbers)


@given(st.permutations(range(12)), st.lists(st.integers(0, 11), max_size=6))
@settings(deadline=None, max_examples=30)
def test_the_sample_is_the_same_however_traces_are_shuffled_or_repeated(order, again):
    traces = WORLD.rollouts(12, seed=3)
    steps = traces.steps // 3
    sample = Corpus(InMemorySource([traces])).sample(steps)
    other = Corpus(InMemorySource([traces.take([*order, *again])]))
    numbers = other.sample(steps)
    chosen = set(other.fetch(numbers))
    assert chosen == {traces[int(number)] for number in sample}
    assert len(chosen) == len(numbers)
    assert sum(map(len, chosen)) >= steps


def test_a_joined_source_keeps_names_and_order(tmp_path):
    sets = [WORLD.rollouts(5, seed) for seed in range(3)]
    shards = JoinedSource([saved(tmp_path / "f", sets[:2]), InMemorySource(sets[2:])])
    assert len(shards) == 3
    assert [*shards] == sets
    assert [shards.read(number) for number in range(3)] == sets
    assert shards.name(1).endswith("part-1.parquet")
    assert shards.name(2) == "trace set 1"
    corpus = Corpus(shards)
    assert corpus.digest == rs.TraceSet.concatenate(sets).digest
    assert not corpus.in_memory


def test_shards_whose_values_do_not_mix_are_named(tmp_path):
    one = rs.TraceSet([rs.Trace([0, 1], [None, None], ["go"], [0])])
    other = rs.TraceSet([rs.Trace(["a", "b"], [None, None], ["go"], [0])])
    with pytest.raises(rs.TraceError, match=r"part-1\.parquet.*`observation` is of type"):
        Corpus(saved(tmp_path / "f", [one, other]))
