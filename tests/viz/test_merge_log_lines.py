"""Lines of the log: aligned, and safe for a terminal."""

import re
from dataclasses import replace

import pytest

import resolvent as rs
from resolvent.machines.tables import MergeDecision
from resolvent.traces import label_text
from resolvent.viz.merge_log import decision_lines, log_lines, summary
from worlds import random_world

TRACES = random_world(3, size=9, labels=4, tm_states=4).rollouts(200, seed=0)


@pytest.fixture(scope="module")
def result():
    return rs.infer(TRACES)


def test_a_line_says_all_of_a_decision(result):
    machine = result.machines.transition
    lines = decision_lines(machine)
    assert len(lines) == len(machine.decisions)
    for one, line in zip(machine.decisions, lines, strict=True):
        if one.new:
            told = re.fullmatch(r" *(\d+) --(\w+?)-*--> new state (\d+)", line).groups()
            assert told == (str(one.source), label_text(one.label), str(one.target))
        else:
            told = re.fullmatch(
                r" *(\d+) --(\w+?)-*--> (\d+) +([\d,]+) answers? agrees?, +([\d,]+) .*folded", line
            ).groups()
            numbers = [int(told[place].replace(",", "")) for place in (0, 2, 3, 4)]
            assert numbers == [one.source, one.target, one.agreeing, one.folded]
            assert told[1] == label_text(one.label)


def test_numbers_stand_below_each_other(result):
    lines = [line for line in decision_lines(result.machines.transition) if "agree" in line]
    assert len({line.index(" answer") for line in lines}) == 1
    assert len({line.index(" tree node") for line in lines}) == 1
    assert len({line.index("-->") for line in decision_lines(result.machines.transition)}) == 1


def test_labels_cannot_steer_a_terminal():
    hostile = frozenset({"\x1b[2J\nTM  0 --fake--> 9\u202e"})
    trace = rs.Trace(["a", "b", "a"], [None, hostile, None], ["go", "go"], [0, 1])
    (line,) = decision_lines(rs.infer(rs.TraceSet([trace])).machines.transition)
    assert line.isprintable()
    assert r"\x1b[2J\nTM  0 --fake--> 9\u202e" in line


def test_a_long_label_takes_no_room_from_others():
    machine = rs.infer(TRACES[:5]).machines.transition
    label = frozenset({"a" * 500})
    one, other = machine.decisions[0], MergeDecision(0, label, 0, False, 3, 4)
    lines = decision_lines(replace(machine, decisions=(one, other)))
    assert len(lines[0]) < 80
    assert "a" * 500 in lines[1]


def test_both_machines_are_told_and_what_was_learned_from(result):
    first, *lines = log_lines(result)
    assert first == f"how states were merged, learned from {result.refinement}"
    kinds = [line.split()[0] for line in lines]
    assert kinds.count("TM") == len(result.machines.transition.decisions)
    assert kinds.count("RM") == len(result.machines.reward.decisions)
    assert lines[0] == "Transition Machine: 4 states: the first and 3 new; 13 merges"


def test_only_the_last_round_is_told(monkeypatch):
    monkeypatch.setattr("resolvent.inference.refinement.SAMPLE_STEPS", 100)
    refined = rs.infer(TRACES, options=rs.InferenceOptions(refine=True))
    assert refined.refinement.rounds > 1
    first, *_ = log_lines(refined)
    assert first.startswith("how states were merged in the last round, learned from ")


@pytest.mark.parametrize("strategy", ["search", "exact"])
def test_strategies_that_do_not_merge_say_so(strategy):
    lines = list(
        log_lines(rs.infer(TRACES, strategy=strategy, options=rs.InferenceOptions(effort=0.01)))
    )
    assert any(line.startswith(f"strategy {strategy} does not merge states") for line in lines)


def test_machines_without_a_log_or_without_decisions(result):
    machine = result.machines.transition
    assert summary(replace(machine, decisions=None)) == "4 states; how it was found is not known"
    assert summary(replace(machine, decisions=())) == "4 states; there was nothing to decide"
    assert decision_lines(replace(machine, decisions=None)) == []
