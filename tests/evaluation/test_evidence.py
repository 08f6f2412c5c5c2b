"""Evidence of random small worlds against its definition in plain Python."""

import gymnasium as gym
import naive_evidence as naive
import numpy as np
import pytest
from hypothesis import given, settings

import resolvent as rs
from resolvent import _core
from resolvent.evaluation.evidence import collect_evidence
from resolvent.evaluation.observed import location
from resolvent.inference.infer import infer_with
from resolvent.machines import UNSEEN
from resolvent.worlds import House
from strategies import infer_options, trace_sets, world_traces

STAGES = [
    "replaying the traces",
    *(
        f"{kind} machine: {stage}"
        for kind in ("transition", "reward")
        for stage in ("counting outputs", "distinguishing states", "checking label sequences")
    ),
    "testing on held-out traces",
]


def test_progress_names_every_stage_and_changes_nothing():
    traces = rs.collect(gym.make("resolvent/House-v0"), episodes=50, seed=0)
    result = rs.infer(traces)
    events = []
    evidence = rs.evidence(result, traces, progress=lambda *now: events.append(now))
    assert list(dict.fromkeys(stage for stage, _ in events)) == STAGES
    assert all(0 <= now.fraction <= 1 for _, now in events)
    silent = collect_evidence(
        result.machines, traces, infer=lambda some: infer_with(result.options, some).machines
    )
    assert evidence.as_dict() == silent.as_dict()


def test_the_compiled_core_reports_progress():
    """With this number of nodes it takes longer than the time between two calls."""
    count, states = 400_000, 1280
    beta = np.zeros(count, np.int32)
    tree = _core.build_history_tree(beta, np.array([0, count]))
    ring = (np.arange(states, dtype=np.int32) + 1) % np.int32(states)
    events = []
    nothing = np.array([], np.int32)
    convergence = _core.converge(
        tree,
        np.full(count, -1, np.int32),
        beta,
        query=nothing,
        state=nothing,
        output=nothing,
        queries=0,
        transitions=ring,
        states=states,
        labels=1,
        progress=lambda *now: events.append(now[2:]),
    )
    assert convergence == (count + 1, 0, 0, 0, 1)
    done = [count_done for count_done, _ in events]
    assert done == sorted(done)
    assert {total for _, total in events} == {count + 1}


def test_unknown_labels_are_never_read_in_a_machine():
    known = rs.TraceSet([rs.Trace([0, 1, 0], [None, "a", None], ["go", "go"], [0, 1])])
    other = rs.TraceSet([rs.Trace([0, 1, 0], [None, "b", None], ["go", "go"], [0, 1])])
    evidence = rs.evidence(rs.infer(known).machines, other)
    assert (0, frozenset({"b"})) in evidence.transition.completeness.unseen_transitions
    assert not evidence.transition.completeness.structure_complete


MANY = 46_400
"""Number of rooms and of doors: more than 2³¹ queries."""


@pytest.mark.slow
def test_evidence_and_report_of_more_than_two_billion_queries(tmp_path):
    house = rs.collect(House(), episodes=200, seed=0)
    far = rs.Trace(
        [f"room {number:05}" for number in range(MANY)] + ["room 00000"],
        [None] * (MANY + 1),
        [f"door {number:05}" for number in range(MANY)],
        [0.0] * MANY,
    )
    traces = rs.TraceSet([*house, far])
    assert len(traces.observations) * len(traces.actions) > 1 << 31
    small, large = (rs.infer(one, noise="none") for one in (house, traces))
    assert [one.states for one in large.machines.values()] == [2, 2]
    sampled, known = (rs.evidence(one, of) for one, of in ((large, traces), (small, house)))
    for kind in ("transition", "reward"):
        assert [*map(str, sampled[kind].separations)] == [*map(str, known[kind].separations)]
    score = large.machines.score(traces)
    assert all(one.right == traces.steps for one in score.values())
    rs.report(large, traces, tmp_path / "far.html", evidence=sampled)
    assert "room 00000" in (tmp_path / "far.html").read_text()


KINDS = ["transition", "reward"]
every_kind = pytest.mark.parametrize("kind", KINDS)


def plain(machine, query):
    """A query as the machine sees it."""
    if query.transition_state is None:
        return query.observation, query.action
    return (query.observation, query.transition_state), query.action


@every_kind
@settings(deadline=None, max_examples=60)
@given(traces=world_traces(), options=infer_options)
def test_outputs_and_transitions_are_counted(kind, traces, options):
    pair = rs.infer(traces, options=rs.InferenceOptions(**options)).machines
    evidence = getattr(collect_evidence(pair, traces), kind)
    machine, table = evidence.machine, evidence.observed_outputs
    found = {}
    for row in range(len(table)):
        key = (
            int(table["state"][row]),
            *machine.query(int(table["query"][row])),
            machine.outputs[int(table["output"][row])],
        )
        found[key] = int(table.count[row]), location(table, row)
    assert found == naive.output_counts(pair, kind, traces)
    transitions = naive.transition_counts(pair, kind, traces)
    trivial = set(machine.trivial_labels)
    assert {
        (transition.state, transition.label, transition.target): (
            transition.count,
            transition.location,
        )
        for transition in evidence.transitions()
    } == {key: figures for key, figures in transitions.items() if key[1] not in trivial}
    counts = [transition.count for transition in evidence.transitions()]
    assert counts == sorted(counts)


@every_kind
@settings(deadline=None, max_examples=60)
@given(traces=world_traces(traces=10), options=infer_options)
def test_states_are_distinguished_by_the_shortest_suffix(kind, traces, options):
    pair = rs.infer(traces, options=rs.InferenceOptions(**options)).machines
    machine = getattr(pair, kind)
    outputs = naive.table(pair, kind, traces)
    counted = naive.output_counts(pair, kind, traces)
    separations = getattr(collect_evidence(pair, traces), kind).separations
    assert len(separations) == machine.states * (machine.states - 1) // 2
    assert separations.depth.tolist() == [
        -1 if separation.suffix is None else len(separation.suffix) for separation in separations
    ]
    assert separations.queries.tolist() == [separation.queries for separation in separations]
    assert separations.support.tolist() == [separation.support for separation in separations]
    weakest = sorted(separations, key=lambda one: (one.support, one.first, one.second))
    assert separations.weakest(4) == weakest[:4]
    assert separations.inseparable == tuple(
        separation for separation in separations if separation.suffix is None
    )
    for separation in separations:
        suffix = naive.shortest_suffix(machine, outputs, separation.first, separation.second)
        assert separation.suffix == suffix
        if suffix is None:
            assert "nothing distinguishes them" in str(separation)
            continue
        q, p = machine.run(suffix, separation.first), machine.run(suffix, separation.second)
        queries = naive.distinguishing_queries(outputs, q, p)
        assert separation.queries == len(queries)
        rows = [(s, *x, outputs[s][x]) for s in (q, p) for x in queries]
        assert separation.support == sum(counted[key][0] for key in rows)
        query = plain(machine, separation.query)
        assert query in queries
        for state, output in zip((q, p), separation.outputs, strict=True):
            assert output.output == outputs[state][query]
            key = (state, *query, output.output)
            assert (output.count, output.location) == counted[key]
        lengths = [sum(counted[s, *x, outputs[s][x]][1][1] for s in (q, p)) for x in queries]
        assert sum(output.location[1] for output in separation.outputs) == min(lengths)


@every_kind
@settings(deadline=None, max_examples=60)
@given(traces=world_traces(traces=10), options=infer_options)
def test_the_three_conditions_of_structure_completeness(kind, traces, options):
    pair = rs.infer(traces, options=rs.InferenceOptions(**options)).machines
    machine = getattr(pair, kind)
    completeness = getattr(collect_evidence(pair, traces), kind).completeness
    sequences = naive.label_sequences(pair, kind, traces)
    reached = {history: machine.run(history) for history in sequences}
    assert set(completeness.unvisited) == set(range(machine.states)) - set(reached.values())
    read = {(reached[h[:-1]], h[-1]) for h in sequences if h}
    trivial = set(machine.trivial_labels)
    every = {(s, label) for s in range(machine.states) for label in machine.labels}
    assert set(completeness.unseen_transitions) == {
        key for key in every - read if key[1] not in trivial
    }
    outputs = naive.table(pair, kind, traces)
    open_ones = [
        (history, state, other)
        for history, state in reached.items()
        for other in range(machine.states)
        if other != state and not naive.rules_out(machine, outputs, sequences, history, other)
    ]
    assert completeness.sequences == len(sequences)
    assert completeness.converging == len(sequences) - len({history for history, *_ in open_ones})
    if not open_ones:
        assert completeness.first_ambiguous is None
        return

    def shortlex(one):
        return len(one[0]), [machine.labels.code(label) for label in one[0]], one[2]

    first = completeness.first_ambiguous
    assert (first.labels, first.state, first.other) == min(open_ones, key=shortlex)


@settings(deadline=None, max_examples=60)
@given(traces=world_traces(), other=world_traces(), options=infer_options)
def test_traces_of_another_world_are_accepted(traces, other, options):
    pair = rs.infer(traces, options=rs.InferenceOptions(**options)).machines
    steps = [asked for kind in KINDS for _, asked in naive.steps(pair, kind, other)]
    queries = {
        (a.observation, a.action) for m in (pair.transition, pair.reward) for a in m.entries()
    }
    if not any(s is not UNSEEN and (o, a) in queries for _, s, o, a, _ in steps):
        return
    evidence = collect_evidence(pair, other)
    assert str(evidence)
    if traces != other:
        assert evidence.holdout is not None
        assert evidence.holdout.traces == len(other)


def test_machines_of_another_world_are_refused():
    pair = rs.infer(rs.TraceSet([rs.Trace([0, 1], [None, None], ["go"], [0])])).machines
    attic = rs.TraceSet([rs.Trace(["attic", "hall"], [None, None], ["down"], [0])])
    with pytest.raises(rs.errors.ModelError, match="inferred from another environment"):
        collect_evidence(pair, attic)
    with pytest.raises(rs.errors.ModelError, match="no traces"):
        rs.evidence(pair, rs.TraceSet())


@every_kind
@settings(deadline=None, max_examples=60)
@given(traces=world_traces(traces=10), options=infer_options)
def test_experiments_can_be_executed(kind, traces, options):
    """Known labels lead to the stated states, and the query can occur there."""
    pair = rs.infer(traces, options=rs.InferenceOptions(**options)).machines
    machine = getattr(pair, kind)
    for experiment in getattr(collect_evidence(pair, traces), kind).experiments:
        if "was never read" in experiment.why:
            assert machine.run(experiment.history[:-1]) is not UNSEEN
            assert machine.run(experiment.history) is UNSEEN
            continue
        assert machine.run(experiment.history) is not UNSEEN
        if experiment.query is not None and kind == "reward" and pair.reward.supplemented:
            observation, action = experiment.query
            there = pair.transition.run(experiment.history)
            queries = {(output.observation, output.action) for output in machine.entries()}
            assert ((observation, there), action) in queries


@settings(deadline=None, max_examples=40)
@given(traces=trace_sets(min_size=2), options=infer_options)
def test_the_order_of_traces_changes_only_their_numbers(traces, options):
    try:
        pair = rs.infer(traces, options=rs.InferenceOptions(**options)).machines
    except rs.ContradictoryTraces:
        return
    turned = traces.take(np.arange(len(traces))[::-1])
    evidence, reordered = collect_evidence(pair, traces), collect_evidence(pair, turned)
    for kind in KINDS:
        mine, yours = getattr(evidence, kind), getattr(reordered, kind)
        assert mine.completeness == yours.completeness
        assert mine.experiments == yours.experiments
        assert mine.observed_outputs.count.tolist() == yours.observed_outputs.count.tolist()
        first, second = (
            outputs.location["step"] for outputs in (mine.observed_outputs, yours.observed_outputs)
        )
        assert first.tolist() == second.tolist()
