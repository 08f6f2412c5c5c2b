"""Weak states and rare transitions, against counting every label sequence one by one."""

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resolvent as rs
from resolvent._util.records import builtin
from resolvent.evaluation.weakness import FEW, LowestKeys, prefix_keys, weaknesses
from resolvent.machines.compare import label_sequence_text
from vending_machine import log


def read(rows):
    return rs.read_log(
        pa.Table.from_pylist(rows),
        episode="session",
        order="time",
        input="event",
        output="response",
    )


@given(st.lists(st.lists(st.integers(0, 2), max_size=6), min_size=1, max_size=12))
def test_equal_beginnings_share_a_key(rows):
    codes = np.array([code for row in rows for code in row], np.int32)
    offsets = np.cumsum([0, *map(len, rows)])
    keys = prefix_keys([codes], offsets).tolist()
    beginnings = [tuple(row[: end + 1]) for row in rows for end in range(len(row))]
    assert len(set(keys)) == len(set(beginnings)) == len({*zip(keys, beginnings, strict=True)})


def by_hand(machine, traces):
    """Distinct label sequences that enter each state, and that take each transition."""
    entering, taking = defaultdict(set), defaultdict(set)
    for trace in traces:
        state, history = 0, ()
        for label in trace.labels[1:-1]:
            if label in machine.trivial_labels:
                continue
            history, before = (*history, label), state
            state = machine.step(state, label)
            taking[before, label].add(history)
            if state != before:
                entering[state].add(history)
    return entering, taking


@pytest.mark.parametrize("sessions", [6, 20, 60, 400])
def test_label_sequences_are_counted_as_in_a_plain_loop(sessions):
    traces = read(log(sessions, seed=sessions, events=12))
    machine = rs.infer(traces).machines["response"]
    weakness = weaknesses(rs.infer(traces).machines, traces)["response"]
    entering, taking = by_hand(machine, traces)
    few = {state: len(entering[state]) for state in range(1, machine.states)}
    assert {one.state: one.sequences for one in weakness.weak} == {
        state: count for state, count in few.items() if count < FEW
    }
    assert [one.sequences for one in weakness.weak] == sorted(
        one.sequences for one in weakness.weak
    )
    assert weakness.transitions == len(taking)
    assert weakness.rare == sum(len(histories) == 1 for histories in taking.values())
    for one in weakness.weak:
        assert machine.run(one.by) == one.state
        assert label_sequence_text(one.by) in str(one)
    if weakness.rare:
        assert len(taking[weakness.example[:2]]) == 1


def test_repeats_and_order_change_only_the_number_of_steps():
    traces = read(log(30, seed=0, events=12))
    machines = rs.infer(traces).machines
    weakness = weaknesses(machines, traces)["response"]
    reordered = weaknesses(machines, traces.take([*range(29, -1, -1), 3, 4]))["response"]
    assert {(one.state, one.sequences) for one in reordered.weak} == {
        (one.state, one.sequences) for one in weakness.weak
    }
    assert (reordered.transitions, reordered.rare, reordered.example) == (
        weakness.transitions,
        weakness.rare,
        weakness.example,
    )


def test_steps_in_sinks_are_reported():
    rows = [
        {"session": session, "time": at, "event": event, "response": response}
        for session in range(9)
        for at, (event, response) in enumerate([("on", "ok"), ("off", "bye"), *[("on", "-")] * 9])
    ]
    traces = read(rows)
    (weakness,) = weaknesses(rs.infer(traces).machines, traces).values()
    (sink,) = weakness.sinks
    assert (weakness.stuck, weakness.steps) == (81, 99)
    assert weakness.lines()[-1].startswith(
        f"81.8% of all steps are in state {sink}, from which no label"
    )


def test_evidence_names_weak_states_too():
    traces = read(log(30, seed=0, events=12))
    result = rs.infer(traces)
    weakness = result.evidence["response"].weakness
    assert weakness == weaknesses(result.machines, traces)["response"]
    assert result.evidence["response"].as_dict()["weak"] == builtin(list(weakness.weak)) != []


PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 9)), max_size=30)


def lowest(pairs, most):
    group, key = np.array(pairs, np.int64).reshape(-1, 2).T
    return LowestKeys.of(group, key, most)


@settings(deadline=None)
@given(PAIRS, st.integers(0, 30), st.integers(1, 4))
def test_the_lowest_keys_of_shards_are_those_of_all_traces(pairs, cut, most):
    different = {}
    for group, key in pairs:
        different.setdefault(group, set()).add(key)
    expected = [
        (group, key) for group in sorted(different) for key in sorted(different[group])[:most]
    ]
    for keys in (lowest(pairs, most), lowest(pairs[cut:], most) + lowest(pairs[:cut], most)):
        assert list(zip(keys.group.tolist(), keys.key.tolist(), strict=True)) == expected
