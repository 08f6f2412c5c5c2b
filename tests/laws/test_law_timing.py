"""Law 7: learner, supplement, replay and live reader read the same labels at every step."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import labels_before, state_at

import resolvent as rs
from resolvent.preprocess.samples import Histories, output_samples, supplement
from resolvent.preprocess.timing import NONE, LabelReader, LabelTiming, labels_read
from resolvent.replay.replaying import states_at_steps
from strategies import infer_options, trace_sets, world_traces

timings = pytest.mark.parametrize("timing", LabelTiming)


def histories(column, traces, vocabulary):
    """What a column of label codes has read by each step."""
    rows = iter(column.tolist())
    found = []
    for trace in traces:
        history = ()
        for _ in trace.actions:
            code = next(rows)
            if code != NONE:
                history = (*history, vocabulary[code])
            found.append(history)
    return found


def expected(traces, timing):
    return [labels_before(trace, t, timing) for trace in traces for t in range(len(trace))]


@timings
@settings(deadline=None, max_examples=80)
@given(traces=trace_sets())
def test_samples_read_the_labels_of_the_table(timing, traces):
    tree = Histories.of(traces, timing)
    for column in (
        labels_read(traces, timing),
        *(output_samples(traces, tree, of).beta for of in ("observation", "reward", "terminated")),
    ):
        assert histories(column, traces, traces.labels) == expected(traces, timing)


@timings
@settings(deadline=None, max_examples=80)
@given(traces=trace_sets())
def test_the_live_reader_reads_the_labels_of_the_table(timing, traces):
    reader = LabelReader(timing)
    for trace in traces:
        read = ()
        for t in range(len(trace)):
            label = reader.reset(trace.labels[0]) if t == 0 else reader.step(trace.labels[t])
            if label is not None:
                read = (*read, label)
            assert read == labels_before(trace, t, timing)


@settings(deadline=None, max_examples=80)
@given(world_traces(), infer_options)
def test_replay_and_supplement_have_the_states_of_the_table(traces, options):
    timing = options["timing"]
    pair = rs.infer(traces, options=rs.InferenceOptions(**options)).machines
    states = states_at_steps(pair, traces)
    assert list(states) == list(pair)
    for kind, machine in pair.items():
        stepped = [state_at(machine, x, t, timing) for x in traces for t in range(len(x))]
        assert states[kind].tolist() == stepped
    vocabulary, codes = supplement(traces, states["transition"])
    assert [vocabulary[code] for code in codes] == [
        (trace.observations[t], state_at(pair.transition, trace, t, timing))
        for trace in traces
        for t in range(len(trace))
    ]


@settings(deadline=None, max_examples=60)
@given(world_traces(), world_traces(), infer_options)
def test_replay_of_other_traces_equals_stepping_even_if_unseen(traces, others, options):
    timing = options["timing"]
    pair = rs.infer(traces, options=rs.InferenceOptions(**options)).machines
    states = states_at_steps(pair, others)
    for kind, machine in pair.items():
        stepped = [state_at(machine, x, t, timing) for x in others for t in range(len(x))]
        assert states[kind].tolist() == [-1 if state is rs.UNSEEN else state for state in stepped]


@settings(deadline=None, max_examples=60)
@given(world_traces(), st.data(), infer_options)
def test_the_live_reader_gives_the_same_states(traces, data, options):
    pair = rs.infer(traces, options=rs.InferenceOptions(**options)).machines
    trace = traces[data.draw(st.integers(0, len(traces) - 1))]
    reader = LabelReader(pair.timing)
    state = 0
    for t in range(len(trace)):
        label = reader.reset(trace.labels[0]) if t == 0 else reader.step(trace.labels[t])
        state = state if label is None else pair.transition.step(state, label)
        assert state == state_at(pair.transition, trace, t, pair.timing)
