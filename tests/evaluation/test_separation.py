"""Machines with more states than a word has bits, and labels that have to be read first."""

import json
import re
from itertools import combinations

import naive_evidence as naive
import numpy as np
import pytest

import resolvent as rs
from resolvent import _core
from resolvent.cli import main
from resolvent.evaluation.completeness import AmbiguousSequence
from resolvent.evaluation.evidence import collect_evidence
from resolvent.evaluation.observed import LazySequence, Query, SampledSteps
from resolvent.machines import Vocabularies, machine_of_tables
from resolvent.traces.vocabulary import Vocabulary

TICK, TOCK = frozenset({"tick"}), frozenset({"tock"})


def waiting(leads, paid):
    """Machines with a single query: the reward of waiting in each state."""
    states = np.arange(len(leads), dtype=np.int32)
    zeros = np.zeros_like(states)
    labels, hall = Vocabulary([TICK, TOCK][: leads.shape[1]]), Vocabulary(["hall"])
    symbols = Vocabularies(labels, hall, Vocabulary(["wait"]), hall)
    transition, _ = machine_of_tables(rs.TransitionMachine, symbols, leads, (states, zeros, zeros))
    rewards = symbols._replace(outputs=Vocabulary([0.0, 1.0, 2.0]))
    reward, _ = machine_of_tables(rs.RewardMachine, rewards, leads, (states, zeros, paid))
    return rs.MachinePair(transition, reward)


def walk(pair, labels):
    """A trace that reads these labels; the first is not read."""
    state, rewards = 0, []
    for label in [None, *labels[1:]]:
        state = state if label is None else pair.reward.step(state, label)
        rewards.append(pair.reward.output(state, "hall", "wait"))
    steps = len(labels)
    return rs.Trace(["hall"] * (steps + 1), [*labels, TICK], ["wait"] * steps, rewards)


def clock(states):
    """A ring of states with a reward in the last one; a trace of two rounds without the last reward."""
    numbers = np.arange(states, dtype=np.int32)
    leads = (numbers[:, None] + 1) % np.int32(states)
    pair = waiting(leads, (numbers == states - 1).astype(np.int32))
    return pair, rs.TraceSet([walk(pair, [TICK] * (2 * states - 1))])


@pytest.mark.parametrize("states", [3, 64, 65, 130])
def test_states_of_a_clock_are_separated_by_waiting(states):
    pair, traces = clock(states)
    evidence = collect_evidence(pair, traces).reward
    assert [(separation.first, separation.second) for separation in evidence.separations] == list(
        combinations(range(states), 2)
    )
    for separation in evidence.separations:
        wait = states - 1 - separation.second
        assert separation.suffix == (TICK,) * wait
        assert (separation.queries, separation.support) == (1, 3)
        silent, strike = separation.outputs
        assert (silent.output, silent.location) == (0.0, (0, separation.first + wait))
        assert (strike.output, strike.location) == (1.0, (0, states - 1))
    # In the second round nothing strikes: what is ahead is ruled out, what is behind is not.
    completeness = evidence.completeness
    assert (completeness.sequences, completeness.converging) == (2 * states - 1, states + 1)
    assert completeness.first_ambiguous == AmbiguousSequence((TICK,) * (states + 1), 1, 0)


@pytest.mark.parametrize("seed", range(4))
def test_label_sequences_of_a_machine_with_more_than_64_states(seed):
    random = np.random.default_rng(seed)
    states = 70
    leads = random.integers(0, states, (states, 2), dtype=np.int32)
    leads[:, 0] = (np.arange(states) + 1) % states
    pair = waiting(leads, random.integers(0, 3, states, dtype=np.int32))
    long = [TICK] * 75
    few = [[[TICK, TOCK][index] for index in random.integers(0, 2, 6)] for _ in range(5)]
    traces = rs.TraceSet([walk(pair, labels) for labels in (long, *few)])
    machine = pair.reward
    sequences = naive.label_sequences(pair, "reward", traces)
    outputs = naive.table(pair, "reward", traces)
    completeness = collect_evidence(pair, traces).reward.completeness
    open_ones = [
        (len(history), [machine.labels.code(label) for label in history], other)
        for history in sequences
        for other in range(states)
        if other != machine.run(history)
        and not naive.rules_out(machine, outputs, sequences, history, other)
    ]
    assert completeness.sequences == len(sequences)
    assert completeness.converging == len(sequences) - len(
        {tuple(labels) for _, labels, _ in open_ones}
    )
    first = completeness.first_ambiguous
    codes = [machine.labels.code(label) for label in first.labels]
    assert (len(codes), codes, first.other) == min(open_ones)


def test_experiments_do_not_depend_on_access_order():
    pair, traces = clock(5)
    for one in (collect_evidence(pair, traces).transition, collect_evidence(pair, traces).reward):
        every = tuple(one.experiments)
        assert every == tuple(one.experiments[number] for number in range(len(every)))
        assert one.experiments == every
        assert one.experiments[:1] == every[:1]


IDS = {"query": [0, 0, 1], "state": [0, 1, 1], "output": [0, 1, 0]}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"state": [0, 2, 1]}, "out of range"),
        ({"state": [0, 0, 1]}, "by query, then by state"),
        ({"query": [1, 0, 1]}, "by query, then by state"),
        ({"query": [0, 0, -1]}, "out of range"),
        ({"output": [0, 1]}, "equally long"),
        ({"transitions": [0, 2]}, "out of range"),
        ({"transitions": [0]}, "one row"),
        ({"count": [1, 1]}, "equally long"),
        ({"states": 0}, "at least one state"),
    ],
)
def test_the_core_refuses_arrays_of_wrong_lengths(changed, words):
    given = {
        **IDS,
        "transitions": [1, 0],
        "count": [1, 1, 1],
        "step": [0, 0, 0],
        "states": 2,
        "labels": 1,
        **changed,
    }
    types = {"count": np.int64, "step": np.int64}
    arguments = {
        name: np.array(value, types.get(name, np.int32)) if isinstance(value, list) else value
        for name, value in given.items()
    }
    with pytest.raises(ValueError, match=words):
        _core.separate(**arguments)


def test_the_core_refuses_rows_outside_the_tree():
    tree = _core.build_history_tree(np.array([0, 0], np.int32), np.array([0, 2]))
    ids = {name: np.array(value, np.int32) for name, value in IDS.items()}
    machine = {"transitions": np.array([1, 0], np.int32), "states": 2, "labels": 1}
    for queries, words in (([0], "equally long"), ([0, 2], "out of range")):
        rows = np.array(queries, np.int32)
        with pytest.raises(ValueError, match=words):
            _core.converge(tree, rows, rows, **ids, queries=2, **machine)


@pytest.fixture(scope="module")
def counting():
    """A log whose reward counts ticks: a chain of 60 states, each unlike all others."""
    ticks = rs.Trace([0] * 61, [None] + ["tick"] * 60, ["go"] * 60, range(60))
    return rs.TraceSet([ticks])


@pytest.fixture(scope="module")
def machines(counting):
    found = rs.infer(counting, outputs=["reward"], noise="none").machines
    assert found["reward"].states == 60
    return found


ROOM = 59 * 30 * 36
"""Bytes for all pairs of 60 states."""


def test_pairs_that_fit_into_memory_are_separated(machines, counting):
    with rs.config.Limits(table_bytes=ROOM):
        gathered = rs.evidence(machines, counting)["reward"]
    assert gathered.separations.skipped is None
    assert len(gathered.separations) == 60 * 59 // 2


def test_pairs_that_do_not_fit_into_memory_are_skipped_and_reported(machines, counting):
    whole = rs.evidence(machines, counting)["reward"]
    with rs.config.Limits(table_bytes=ROOM - 1):
        gathered = rs.evidence(machines, counting)["reward"]
    reason = gathered.separations.skipped
    assert "59 by 30, take" in reason
    assert f"RESOLVENT_MAX_TABLE_BYTES={ROOM}" in reason
    assert len(gathered.separations) == 0
    assert gathered.inseparable == ()
    assert f"pairs of states were skipped: {reason}" in str(gathered)
    assert gathered.as_dict()["separations_skipped"] == reason
    # All else is as it is with them.
    assert gathered == whole
    assert gathered.weakness == whole.weakness
    assert gathered.transitions(3) == whole.transitions(3)


def test_commands_skip_separation_of_too_many_pairs(
    machines, counting, tmp_path, monkeypatch, capsys
):
    machines.save(tmp_path / "m.json")
    counting.save(tmp_path / "t.jsonl")
    files = [str(tmp_path / "m.json"), str(tmp_path / "t.jsonl")]
    monkeypatch.setenv("RESOLVENT_MAX_TABLE_BYTES", str(ROOM - 1))
    page = tmp_path / "page.html"
    assert main(["report", *files, "-o", str(page)]) == 0
    figures = re.search(r'"proof":(\{.*?"left_out":"[^"]*")', page.read_text(encoding="utf-8"))
    proof = json.loads(figures[1] + "}")
    assert (proof["shown"], proof["matrix"], proof["weakest"], proof["pairs"]) == (0, [], [], 0)
    assert "more than the limit" in proof["left_out"]
    capsys.readouterr()
    assert main(["check", *files, "--evidence"]) == 0
    assert "pairs of states were skipped: pairs of states to distinguish" in capsys.readouterr().out


def test_a_lazy_sequence_builds_its_elements_on_access():
    squares = LazySequence(5, lambda index: index * index)
    assert (squares[-1], squares[1:3], list(squares)) == (16, (1, 4), [0, 1, 4, 9, 16])
    assert squares == (0, 1, 4, 9, 16) != squares[1:]


def test_queries_and_samples_as_text():
    assert str(Query("hall", "up", 1)) == "(hall, up) in TM state 1"
    assert str(SampledSteps(1_000_211, 12_000_000)) == "from 1,000,211 of 12,000,000 steps"
