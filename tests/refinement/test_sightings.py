"""Replay in the core against a plain reading of what it should count."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resolvent.machines import MachinePair, RewardMachine, TransitionMachine
from resolvent.refinement import Corpus
from resolvent.refinement import sightings as module
from resolvent.refinement.sightings import replay
from resolvent.samples import LabelReader, LabelTiming
from resolvent.traces import TraceSet, Vocabulary
from resolvent.traces.shards import ShardsInMemory
from strategies import trace_sets

EMPTY = np.empty(0, np.int32)
NO_QUESTIONS = np.empty(0, np.int64)


def machine(kind, labels, table, **more):
    return kind(
        labels=labels,
        observations=Vocabulary([]),
        actions=Vocabulary([]),
        outputs=Vocabulary([]),
        transitions=np.array(table, np.int32).reshape(len(table), len(labels)),
        trivial=(),
        output_state=EMPTY,
        output_question=NO_QUESTIONS,
        output_value=EMPTY,
        constant_question=NO_QUESTIONS,
        constant_value=EMPTY,
        **more,
    )


@st.composite
def machines(draw, labels):
    """A pair of any tables over some labels: moves may be missing."""

    def table(states):
        row = st.lists(st.integers(-1, states - 1), min_size=len(labels), max_size=len(labels))
        return draw(st.lists(row, min_size=states, max_size=states))

    supplemented = draw(st.booleans())
    return MachinePair(
        machine(TransitionMachine, labels, table(draw(st.integers(1, 3)))),
        machine(RewardMachine, labels, table(draw(st.integers(1, 3))), supplemented=supplemented),
        draw(st.sampled_from(LabelTiming)),
    )


class Oracle:
    """Goes through traces step by step and counts, with symbols instead of codes."""

    def __init__(self, pair, traces):
        self.answers = {"transition": Counter(), "reward": Counter()}
        self.moves = {"transition": Counter(), "reward": Counter()}
        self.shortest = {}
        self.situations, self.ended = Counter(), Counter()
        for trace in traces:
            self.walk(pair, trace)

    def saw(self, what, trace):
        self.shortest[what] = min(self.shortest.get(what, len(trace)), len(trace))

    def walk(self, pair, trace):
        reader = LabelReader(pair.timing)
        read = [reader.reset(trace.labels[0]), *map(reader.step, trace.labels[1:])]
        state = {"transition": 0, "reward": 0}
        for step in range(len(trace)):
            for kind in state:
                if read[step] is None or state[kind] < 0:
                    continue
                known = getattr(pair, kind)
                move = (state[kind], read[step])
                target = int(known.transitions[state[kind], known.labels.code(read[step])])
                self.moves[kind][*move, target] += 1
                self.saw((kind, "move", *move), trace)
                state[kind] = target
            q, u = state["transition"], state["reward"]
            seen, done = trace.observations[step], trace.actions[step]
            if q >= 0:
                answer = ("transition", q, seen, done, trace.observations[step + 1])
                self.answers["transition"][answer[1:]] += 1
                self.saw(answer, trace)
            if u >= 0 and (q >= 0 or not pair.reward.supplemented):
                asked = (seen, q) if pair.reward.supplemented else seen
                answer = ("reward", u, asked, done, trace.rewards[step])
                self.answers["reward"][answer[1:]] += 1
                self.saw(answer, trace)
            if q >= 0 and u >= 0:
                self.situations[u, seen, q, done] += 1
                if step == len(trace) - 1 and trace.terminated:
                    self.ended[u, seen, q, done] += 1


def read_back(pair, corpus, seen):
    """The same as the oracle's counters, from columns of codes."""
    alphabets = corpus.alphabets
    states = pair.transition.states

    def paired(question):
        pair_code, action = divmod(int(question), len(alphabets.actions))
        observation, q = divmod(pair_code, states)
        return (alphabets.observations[observation], q), alphabets.actions[action]

    def plain(question):
        observation, action = divmod(int(question), len(alphabets.actions))
        return alphabets.observations[observation], alphabets.actions[action]

    answers, moves, shortest = {}, {}, {}
    for kind, outputs in (
        ("transition", alphabets.observations),
        ("reward", alphabets.rewards),
    ):
        asked = paired if kind == "reward" and pair.reward.supplemented else plain
        one = getattr(seen, kind)
        answers[kind] = {}
        for row in one.answers:
            key = (int(row["state"]), *asked(row["question"]), outputs[int(row["output"])])
            answers[kind][key] = int(row["count"])
            shortest[kind, *key] = int(row["length"])
        moves[kind] = {}
        for row in one.moves:
            label = alphabets.labels[int(row["label"])]
            moves[kind][int(row["state"]), label, int(row["output"])] = int(row["count"])
            shortest[kind, "move", int(row["state"]), label] = int(row["length"])
    situations, ended = {}, {}
    for row in seen.endings:
        (observation, q), action = paired(row["question"])
        key = (int(row["state"]), observation, q, action)
        situations[key], ended[key] = int(row["count"]), int(row["ended"])
    return answers, moves, shortest, situations, ended


@pytest.mark.parametrize("threads", [1, 3])
@settings(deadline=None, max_examples=150)
@given(data=st.data(), traces=trace_sets())
def test_replay_counts_what_a_plain_reading_counts(threads, data, traces):
    pair = data.draw(machines(traces.labels))
    cuts = sorted(data.draw(st.lists(st.integers(1, len(traces)), max_size=2)))
    bounds = zip([0, *cuts], [*cuts, len(traces)], strict=True)
    sets = [traces[start:stop] for start, stop in bounds if stop > start]
    corpus = Corpus(ShardsInMemory(sets))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "THREADS", threads)
        seen = replay(pair, corpus)
    answers, moves, shortest, situations, ended = read_back(pair, corpus, seen)
    oracle = Oracle(pair, traces)
    assert answers == oracle.answers
    assert moves == oracle.moves
    assert shortest == oracle.shortest
    assert ended == oracle.ended
    assert situations == {key: oracle.situations[key] for key in oracle.ended}


@settings(deadline=None, max_examples=60)
@given(data=st.data(), traces=trace_sets())
def test_witnesses_show_what_they_are_said_to(data, traces):
    pair = data.draw(machines(traces.labels))
    corpus = Corpus(ShardsInMemory([traces]))
    seen = replay(pair, corpus)
    for one, values in (
        (seen.transition, lambda trace, step: trace.observations[step + 1]),
        (seen.reward, lambda trace, step: trace.rewards[step]),
    ):
        outputs = corpus.alphabets.observations if one is seen.transition else traces.rewards
        for row in one.answers:
            trace, step = traces[int(row["trace"])], int(row["step"])
            assert len(trace) == row["length"]
            assert values(trace, step) == outputs[int(row["output"])]
            assert trace.actions[step] == traces.actions[int(row["question"]) % len(traces.actions)]


def test_many_observations_are_counted_in_a_hash_table():
    """Beyond 2^20 possible entries the core does not keep a plain table."""
    rng = np.random.default_rng(0)
    steps, kinds = 30_000, 2_000_000
    seen = rng.choice(kinds, 500, replace=False)[rng.integers(500, size=steps + 1)]
    traces = TraceSet.from_columns(
        (range(kinds), seen.astype(np.int32)),
        ([frozenset(), frozenset({"a"})], rng.integers(2, size=steps + 1, dtype=np.int32)),
        (range(3), rng.integers(3, size=steps, dtype=np.int32)),
        ([0.0, 1.0], rng.integers(2, size=steps, dtype=np.int32)),
        offsets=[0, steps],
        terminated=[True],
        truncated=[False],
    )
    states = 1000
    table = [[(s * 7 + 1) % states, (s + 1) % states] for s in range(states)]
    pair = MachinePair(
        machine(TransitionMachine, traces.labels, table),
        machine(RewardMachine, traces.labels, table, supplemented=True),
    )
    corpus = Corpus(ShardsInMemory([traces]))
    found = replay(pair, corpus)
    assert len(traces.observations) * 3 * states > 2**20
    answers, moves, _, situations, ended = read_back(pair, corpus, found)
    oracle = Oracle(pair, traces)
    assert answers == oracle.answers
    assert moves == oracle.moves
    assert ended == oracle.ended
    assert situations == {key: oracle.situations[key] for key in oracle.ended}
