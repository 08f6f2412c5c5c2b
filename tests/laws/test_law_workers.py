"""What is inferred does not depend on who goes through the pieces, in which order, how often."""

import json
import pickle
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_law_replay import assert_same

import resolvent as rs
from resolvent._util.parallel import Processes, Threads
from resolvent._util.ray import Ray
from resolvent.replay import scan as looking
from resolvent.replay.corpus import Corpus
from resolvent.replay.replaying import replay
from resolvent.traces.source import InMemorySource, ShardInfo, TraceSource
from shuffled_workers import ShuffledWorkers
from strategies import moving_machines, traces_with_cost
from worlds import random_world


class Apart(TraceSource):
    """Trace sets that count as files: they are asked for one by one, anywhere."""

    def __init__(self, sets):
        self.sets = sets

    def __len__(self):
        return len(self.sets)

    @property
    def rows(self):
        return sum(one.steps for one in self.sets)

    def read(self, number):
        return self.sets[number]

    def info(self, number):
        return ShardInfo(f"part {number}")


@st.composite
def in_pieces(draw):
    """Traces, many of them repeated, in pieces of any size; some are empty."""
    traces = draw(traces_with_cost())
    drawn = draw(st.lists(st.integers(0, len(traces) - 1), min_size=1, max_size=20))
    traces = rs.TraceSet([traces[number] for number in drawn])
    cuts = sorted(draw(st.lists(st.integers(0, len(traces)), max_size=5)))
    bounds = zip([0, *cuts], [*cuts, len(traces)], strict=True)
    return traces, [traces[start:stop] for start, stop in bounds]


def first_of_lowest_key(corpus, steps):
    """The pool by its definition: distinct traces by key, until there are so many steps."""
    keys = np.concatenate([shard.key for shard in corpus.coded()])
    lengths = np.concatenate([shard.length for shard in corpus.coded()])
    first = {}
    for number, key in enumerate(keys.tolist()):
        first.setdefault(key, number)
    found, total = [], 0
    for key in sorted(first):
        if total >= steps:
            break
        found.append(first[key])
        total += int(lengths[first[key]])
    return found


@settings(deadline=None, max_examples=40)
@given(data=st.data(), drawn=in_pieces(), seed=st.integers(0, 999), steps=st.integers(1, 60))
def test_a_corpus_does_not_depend_on_the_workers(data, drawn, seed, steps):
    traces, sets = drawn
    machines = data.draw(moving_machines(traces.labels))
    whole = Corpus(InMemorySource([traces]))
    with mock.patch.object(looking, "LEAST_STEPS", 1):
        corpus = Corpus(Apart(sets), pool_steps=steps, workers=ShuffledWorkers(seed))
    assert corpus.alphabets == whole.alphabets
    assert (corpus.traces, corpus.steps, corpus.digest) == (
        len(traces),
        traces.steps,
        traces.digest,
    )
    assert corpus.pool.number.tolist() == first_of_lowest_key(whole, steps)
    wanted = np.array(sorted(data.draw(st.sets(st.integers(0, len(traces) - 1), min_size=1))))
    assert corpus.fetch(wanted) == traces.take(wanted)
    for shortest in (True, False):
        assert_same(
            replay(machines, corpus, shortest=shortest), replay(machines, whole, shortest=shortest)
        )


@settings(deadline=None, max_examples=15)
@given(drawn=in_pieces(), odd=st.integers(0, 5), seeds=st.lists(st.integers(0, 99), min_size=2))
def test_invalid_shards_are_refused_with_the_same_message(drawn, odd, seeds):
    _, sets = drawn
    other = rs.TraceSet([rs.Trace([(0, 1), (1, 2)], [None, None], [7], [0.5])])
    sets = [*sets[:odd], other, *sets[odd:]]
    said = set()
    for workers in (Threads(1), *map(ShuffledWorkers, seeds)):
        with pytest.raises(rs.TraceError) as caught:
            Corpus(Apart(sets), workers=workers)
        said.add(str(caught.value))
    assert len(said) == 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Seven files of different sizes, whose machines need rounds of refinement."""
    folder = tmp_path_factory.mktemp("pieces")
    world = random_world(5, size=9, labels=4, tm_states=4)
    for number, episodes in enumerate((400, 3, 250, 90, 1, 60, 500)):
        world.rollouts(episodes, number).save(folder / f"part-{number}.parquet")
    return folder


def without_times(figures):
    if isinstance(figures, dict):
        return {key: without_times(one) for key, one in figures.items() if key != "seconds"}
    return [without_times(one) for one in figures] if isinstance(figures, list) else figures


def found(folder, on, **options):
    """All that an inference finds, but for the time it took."""
    with mock.patch(
        "resolvent.inference.refinement.SAMPLE_STEPS", 300
    ):  # too few, so that there are rounds
        result = rs.infer(rs.scan_traces(folder), options=rs.InferenceOptions(on=on, **options))
    statistics = without_times(result.as_dict())
    assert result.refinement.rounds > 1
    path = folder.parent / f"{folder.name}.json"
    result.machines.save(path)
    again = pickle.loads(pickle.dumps(result))  # noqa: S301 -- our own bytes
    assert again.machines == result.machines
    return path.read_bytes(), json.dumps(statistics, default=str), result.inference_state.counts


@pytest.fixture(scope="module")
def alone(folder):
    return found(folder, Threads(1))


def assert_finds_the_same(found, alone):
    assert found[:2] == alone[:2]
    assert_same(found[2], alone[2])


@pytest.mark.parametrize("threads", [2, 3])
def test_the_number_of_threads_makes_no_difference(folder, alone, threads):
    assert_finds_the_same(found(folder, Threads(threads)), alone)


@pytest.mark.parametrize("seed", range(3))
def test_order_grouping_and_repeats_make_no_difference(folder, alone, seed):
    assert_finds_the_same(found(folder, ShuffledWorkers(seed)), alone)


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2])
def test_processes_make_no_difference(folder, alone, number):
    processes = Processes(number)
    assert_finds_the_same(found(folder, processes), alone)
    processes.close()


@pytest.mark.parametrize("slots", [1, 2])
def test_ray_makes_no_difference(folder, alone, slots, ray_of_two, monkeypatch):
    monkeypatch.setattr("resolvent._util.ray._slots", lambda ray: slots)
    assert_finds_the_same(found(folder, Ray()), alone)


def test_machines_are_those_of_traces_in_memory(folder, alone):
    machines = rs.infer(rs.read_traces(folder)).machines
    machines.save(folder.parent / "whole.json")
    stored = [
        json.loads(text)["machines"]
        for text in (alone[0], (folder.parent / "whole.json").read_bytes())
    ]
    for machine in (*stored[0], *stored[1]):
        del machine["decisions"]  # on fewer traces, the search agreed on fewer outputs
    assert stored[0] == stored[1]
