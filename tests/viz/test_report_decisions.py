"""What a report says of the log of merges, against values worked out from the decisions."""

from dataclasses import replace

import gymnasium as gym
import pytest

import resolvent as rs
from resolvent.evaluation.evidence import collect_evidence
from resolvent.machines.tables import MergeDecision
from resolvent.viz.report.machine import MOST_COLUMNS, MOST_ROWS, timeline
from resolvent.viz.report.page import contents, inert_json, log_notes
from synthetic_pair import synthetic


@pytest.fixture(scope="module")
def house():
    traces = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    return rs.infer(traces).machines, traces


def logged(machine, decisions):
    return replace(machine, decisions=tuple(decisions))


def made_up(number):
    """Every third decision finds a state; merges have as many agreeing answers as their number."""
    label = frozenset({"go"})
    return [
        MergeDecision(0, label, place, True, 0, 0)
        if place % 3 == 0
        else MergeDecision(0, label, 0, False, place, 2 * place)
        for place in range(number)
    ]


def test_the_house_has_a_column_for_each_decision(house):
    pair, traces = house
    data = contents(pair, collect_evidence(pair, traces))
    assert data["found"] == []
    shown = data["machines"][0]["timeline"]
    decisions = pair.transition.decisions
    assert (shown["total"], shown["merges"], shown["bare"]) == (5, 4, 0)
    assert [(one["first"], one["last"]) for one in shown["columns"]] == [
        (number, number) for number in range(1, 6)
    ]
    for one, column, row in zip(decisions, shown["columns"], shown["rows"], strict=True):
        assert column["new"] == ([one.target] if one.new else [])
        assert column["least"] == column["most"] == (None if one.new else one.agreeing)
        assert row[2:] == ([None, None] if one.new else [one.agreeing, one.folded])
        assert row[1] in column["text"]
    assert shown["columns"][0]["text"] == "Decision 1: 0 —key→ new state 1"
    assert shown["columns"][1]["text"] == (
        "Decision 2: 1 —key→ 1: 32 outputs agree, 388 tree nodes folded"
    )


def test_the_weakest_merges_come_first(house):
    machine = logged(house[0].transition, made_up(30))
    shown = timeline(machine)
    assert [row[2] for row in shown["weakest"]] == [1, 2, 4, 5, 7, 8, 10, 11]
    assert shown["weakest"][0] == [2, "0 —go→ 0", 1, 2]
    equal = [one._replace(agreeing=0) for one in made_up(30)]
    shown = timeline(logged(machine, equal))
    assert shown["bare"] == shown["merges"] == 20
    assert [row[3] for row in shown["weakest"]] == [58, 56, 52, 50, 46, 44, 40, 38]


@pytest.mark.parametrize("number", [1, MOST_COLUMNS, MOST_COLUMNS + 1, 12_345])
def test_columns_are_few_and_leave_nothing_out(house, number):
    decisions = made_up(number)
    shown = timeline(logged(house[0].transition, decisions))
    columns = shown["columns"]
    assert len(columns) == min(number, MOST_COLUMNS)
    assert len(shown["rows"]) == min(number, MOST_ROWS)
    numbers = [n for one in columns for n in range(one["first"], one["last"] + 1)]
    assert numbers == list(range(1, number + 1))
    widths = {one["last"] - one["first"] for one in columns}
    assert max(widths) - min(widths) <= 1
    for column in columns:
        part = decisions[column["first"] - 1 : column["last"]]
        merges = [one.agreeing for one in part if not one.new]
        assert column["new"] == [one.target for one in part if one.new]
        assert column["merges"] == len(merges)
        assert column["least"] == min(merges, default=None)
        assert column["most"] == max(merges, default=None)
    assert len(inert_json(shown)) < 200_000


def test_a_column_of_many_says_so(house):
    shown = timeline(logged(house[0].transition, made_up(20 * MOST_COLUMNS)))
    assert shown["columns"][0]["text"] == (
        "Decisions 1 to 20: 7 new states (0, 3, 6, 9, …), 13 merges on which 1 to 19 outputs agree"
    )


def test_machines_without_a_log_say_so(house):
    pair, _ = house
    bare = [replace(one, decisions=None) for one in (pair.transition, pair.reward)]
    assert timeline(bare[0]) is None
    assert log_notes(pair.replacing(bare[0])) == [
        "No merges are recorded for the Transition Machine: infer again to see them."
    ]
    assert log_notes(pair.replacing(*bare)) == [
        "No merges are recorded for the Transition Machine and the Reward Machine: "
        "infer again to see them."
    ]
    made, _ = synthetic(5, 10, 5)
    assert len(log_notes(made)) == 1


@pytest.mark.parametrize("strategy", ["search", "exact"])
def test_strategies_that_do_not_merge_say_so(house, strategy):
    pair = rs.infer(house[1], strategy=strategy, options=rs.InferenceOptions(effort=0.01)).machines
    (sentence,) = log_notes(pair)
    assert sentence.startswith(f"Strategy {strategy} does not merge states: ")
    assert timeline(pair.transition)["total"] == 5


def test_a_strategy_in_a_file_may_be_anything(house):
    pair, _ = house
    for odd, data in ((7, 0), (["edsm"], 0), ("own\x1b", 0), ("edsm", 0), ("search", 1)):
        other = pair.replacing(provenance=rs.machines.Provenance("0", 1, 1, "", {"strategy": odd}))
        sentences = log_notes(other)
        assert len(sentences) == data
