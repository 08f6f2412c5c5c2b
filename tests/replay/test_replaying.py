"""The compiled pass against a walk in plain Python."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_replay import PlainReplay, read_back

import resolvent as rs
from resolvent._util.parallel import limit_cores
from resolvent.machines import machines_of
from resolvent.preprocess.timing import LabelTiming
from resolvent.replay.corpus import Corpus
from resolvent.replay.replaying import replay, replay_traces, states_at_steps
from resolvent.traces import Trace, TraceSet
from resolvent.traces.source import InMemorySource
from strategies import moving_machine, moving_machines, traces_with_cost


def in_pieces(traces, data):
    cuts = sorted(data.draw(st.lists(st.integers(1, len(traces)), max_size=2)))
    bounds = zip([0, *cuts], [*cuts, len(traces)], strict=True)
    return Corpus(InMemorySource([traces[a:b] for a, b in bounds if b > a]))


def in_known_states(plain):
    """Without what was answered while a state was not known."""
    plain.answers = {
        kind: {answer: times for answer, times in answers.items() if answer[0] >= 0}
        for kind, answers in plain.answers.items()
    }
    return plain


@pytest.mark.parametrize("threads", [1, 3])
@settings(deadline=None, max_examples=60)
@given(data=st.data(), traces=traces_with_cost())
def test_shards_add_up_to_what_a_plain_walk_counts(threads, data, traces):
    some = data.draw(moving_machines(traces.labels))
    corpus = in_pieces(traces, data)
    with limit_cores(threads):
        shown = replay(some, corpus)
    found, plain = read_back(some, shown), in_known_states(PlainReplay.of(some, traces))
    assert found.answers == plain.answers
    assert found.moves == plain.moves
    shortest = {
        what: length for what, length in plain.shortest.items() if "move" in what or what[1] >= 0
    }
    assert found.shortest == shortest
    assert found.ended == plain.ended
    assert found.situations == {key: plain.situations[key] for key in plain.ended}
    assert (shown.traces, shown.steps) == (len(traces), traces.steps)


@pytest.mark.parametrize("threads", [1, 3])
@settings(deadline=None, max_examples=60)
@given(data=st.data(), traces=traces_with_cost())
def test_unknown_states_and_earliest_locations_and_states(threads, data, traces):
    some = data.draw(moving_machines(traces.labels))
    with limit_cores(threads):
        shown = replay_traces(some, traces, earliest=True, states=True)
    found, plain = read_back(some, shown), PlainReplay.of(some, traces)
    assert found.answers == plain.answers
    assert found.moves == plain.moves
    assert found.unasked == plain.unasked
    assert found.earliest == plain.earliest
    assert found.states == plain.states
    assert {kind: one.tolist() for kind, one in states_at_steps(some, traces).items()} == (
        plain.states
    )


@settings(deadline=None, max_examples=60)
@given(data=st.data(), traces=traces_with_cost())
def test_examples_show_their_rows(data, traces):
    some = data.draw(moving_machines(traces.labels))
    shown = replay(some, Corpus(InMemorySource([traces])))
    for kind, one in some.items():
        outputs = shown.alphabets.outputs(one.predicts)
        for row in shown.machines[kind].outputs:
            trace, step = traces[int(row["trace"])], int(row["step"])
            alone = PlainReplay.of(some, [trace])
            assert len(trace) == row["length"]
            assert alone.states[kind][step] == row["state"]
            assert any(answer[-1] == outputs[int(row["output"])] for answer in alone.answers[kind])
            assert trace.actions[step] == traces.actions[int(row["query"]) % len(traces.actions)]


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
    pair = machines_of(
        [
            moving_machine("observation", traces.labels, table),
            moving_machine("reward", traces.labels, table, supplemented=True),
        ],
        LabelTiming.CURRENT,
    )
    shown = replay(pair, Corpus(InMemorySource([traces])))
    assert len(traces.observations) * 3 * states > 2**20
    found, plain = read_back(pair, shown), PlainReplay.of(pair, traces)
    assert found.answers == plain.answers
    assert found.moves == plain.moves
    assert found.ended == plain.ended
    assert found.situations == {key: plain.situations[key] for key in plain.ended}


def test_more_queries_than_32_bits_can_number():
    """Observations × actions above 2³¹: query numbers are 64 bits wide everywhere."""
    many = 47_000
    traces = TraceSet.from_columns(
        (range(many), np.arange(many, dtype=np.int32)),
        ([frozenset()], np.zeros(many, np.int32)),
        (range(many - 1), np.arange(many - 1, dtype=np.int32)[::-1].copy()),
        ([0.0], np.zeros(many - 1, np.int32)),
        offsets=[0, many - 1],
        terminated=[False],
        truncated=[True],
    )
    assert len(traces.observations) * len(traces.actions) > 2**31
    result = rs.infer(traces)
    score = result.machines.score(traces)
    assert (score.transition.right, score.transition.steps) == (many - 1, many - 1)
    assert len(rs.evidence(result, traces).transition.observed_outputs["query"]) == many - 1


def test_replays_in_different_codes_do_not_add_up():
    one, other = (TraceSet([Trace([0, 1], [None, "a"], [name], [0])]) for name in ("go", "stay"))
    some = machines_of([moving_machine("observation", one.labels, [[0, 0]])], LabelTiming.CURRENT)
    with pytest.raises(ValueError, match="same codes"):
        replay_traces(some, one) + replay_traces(some, other)


def test_a_column_that_traces_do_not_have_is_named():
    traces = TraceSet([Trace([0, 1], [None, "a"], ["go"], [0])])
    some = machines_of([moving_machine("cost", traces.labels, [[0, 0]])], LabelTiming.CURRENT)
    with pytest.raises(
        rs.errors.ModelError, match=r"predicts cost.*they have observation, terminated"
    ):
        replay_traces(some, traces)
