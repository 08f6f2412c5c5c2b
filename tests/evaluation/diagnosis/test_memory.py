"""Noise is distinguished from a missing label, in worlds with one of the two."""

from collections import Counter
from functools import cache
from random import Random

import gymnasium as gym
import numpy as np
import pytest
from diagnosed import trace

import resolvent as rs
from noisy_worlds import disturbed, noisy_house
from resolvent.evaluation.diagnosis.columns import are_independent, shuffled_labels
from resolvent.evaluation.diagnosis.memory import Feature, _over_all_queries

ABOUT_CHANCE = ("noise", "missing-label", "uninformative-labels")


@cache
def house():
    return rs.collect(gym.make("resolvent/House-v0"), episodes=300, seed=0)


def relabelled(traces, labeling_fn):
    """The traces with other labels: those that a function gives for each of theirs."""
    return rs.TraceSet(
        rs.Trace(
            one.observations,
            [labeling_fn(label) for label in one.labels],
            one.actions,
            one.rewards,
            one.terminated,
            one.truncated,
        )
        for one in traces
    )


def without(traces, name):
    return relabelled(traces, lambda label: label - {name})


def at_random(traces, seed=0):
    labels = [label for one in traces for label in one.labels]
    Random(seed).shuffle(labels)
    return relabelled(traces, lambda _: labels.pop())


def findings(traces, **options):
    diagnosis = rs.diagnose(traces, **options)
    return {
        (finding.kind, finding.figures.get("output")): finding
        for finding in diagnosis.findings
        if finding.kind in ABOUT_CHANCE
    }


def test_without_contradictions_there_is_no_finding():
    assert findings(house()) == {}


def test_noise_is_reported_as_chance():
    _, noisy = noisy_house()
    noise = findings(noisy)
    assert [*noise] == [("noise", "observation"), ("noise", "reward")]
    note = noise["noise", "observation"]
    assert note.severity == "note"
    assert note.figures["share"] == pytest.approx(0.05, abs=0.01)
    assert note.figures["candidates"] > 1000


@pytest.mark.parametrize(
    ("name", "output", "seen", "query"),
    [
        ("key", "observation", "orangeroom", "(corridor, up)"),
        ("toilet", "reward", "cyanroom", "(limegreenroom, sit)"),
    ],
)
@pytest.mark.parametrize("share", [0.0, 0.05])
def test_a_missing_label_is_named_by_the_observation(name, output, seen, query, share):
    traces = disturbed(without(house(), name), share, Random(1))
    finding = findings(traces)["missing-label", output]
    assert finding.severity == "warning"
    (first, *_) = finding.figures["depends_on"]
    assert seen in first["of"]
    assert first["query"] == query
    assert first["explained"] > 0.8 * first["deviating"]
    assert f"depend on whether {first['of']} was" in finding.text


def test_unaffected_outputs_are_not_reported_as_noise():
    """The reward machine of the house without the label "key" is as noisy as before."""
    traces = disturbed(without(house(), "key"), 0.05, Random(1))
    assert ("noise", "reward") in findings(traces)


def test_slipping_is_reported_as_chance():
    grid = gym.make("resolvent/RandomWorld-v0", world_seed=0)
    traces = rs.collect(grid, episodes=80, seed=0)
    random = np.random.default_rng(0)
    slips = random.random(traces.steps) < 0.1
    drawn = random.integers(0, len(traces.actions), traces.steps)
    slipped = rs.TraceSet.from_columns(
        (traces.observations, traces.observation_codes),
        (traces.labels, traces.label_codes),
        (traces.actions, np.where(slips, drawn, traces.action_codes).astype(np.int32)),
        offsets=traces.offsets,
        terminated=traces.terminated,
        truncated=traces.truncated,
    )
    assert [*findings(slipped)] == [("noise", "observation")]


def test_random_labels_carry_no_information():
    found = findings(at_random(house()))
    finding = found["uninformative-labels", None]
    assert finding.severity == "warning"
    assert finding.figures == {"labels": 3, "at_random": True, "depends_on_past": True}
    assert found["missing-label", "observation"].figures["depends_on"][0]["of"] == "orangeroom"


def test_random_labels_in_a_log_without_rewards():
    log = rs.TraceSet(
        rs.Trace(trace.observations, trace.labels, trace.actions, columns={"cost": trace.rewards})
        for trace in at_random(house())
    )
    assert ("uninformative-labels", None) in findings(log)


def test_a_random_world_without_memory_needs_no_labels():
    """The number of a die is a label, which says nothing about the next throw."""
    random = Random(0)
    throws = [[random.choice("123456") for _ in range(20)] for _ in range(50)]
    finding = findings(rs.TraceSet(trace(["table", *shown], [None, *shown]) for shown in throws))
    assert finding["uninformative-labels", None].severity == "note"
    assert not finding["uninformative-labels", None].figures["at_random"]


def test_random_labels_that_change_the_world_are_informative():
    """A bell rings at random; then the door leads elsewhere, except for one step in ten."""
    random = Random(0)

    def day():
        rung, rooms, rings = False, ["hall"], [None]
        for _ in range(20):
            ring = random.random() < 0.1
            rooms.append("attic" if rung ^ (random.random() < 0.1) else "cellar")
            rings.append("bell" if ring else None)
            rung |= ring
        return trace(rooms, rings)

    kinds = findings(rs.TraceSet(day() for _ in range(100)))
    assert [*kinds] == [("noise", "observation")]
    assert kinds["noise", "observation"].figures["states"] == 2


def test_outputs_drawn_per_episode_repeat_within_it():
    """Behind a door is one of two rooms, the same for a whole episode, without a label."""
    random = Random(0)
    rooms = [random.choice(["attic", "cellar"]) for _ in range(40)]
    traces = rs.TraceSet(
        trace(["hall", *[room, "hall"] * 5], actions=["in", "out"] * 5) for room in rooms
    )
    finding = findings(traces)["missing-label", "observation"]
    (first, *_) = finding.figures["depends_on"]
    assert first["query"] == "(hall, in)"
    assert first["explained"] > 0


def test_the_order_of_traces_makes_no_difference():
    traces = [*disturbed(without(house(), "key"), 0.05, Random(1))]
    before = findings(rs.TraceSet(traces))
    Random(5).shuffle(traces)
    assert {key: one.figures for key, one in findings(rs.TraceSet(traces)).items()} == {
        key: one.figures for key, one in before.items()
    }


def test_shuffling_keeps_the_labels_of_each_trace():
    shuffled = shuffled_labels(house())
    assert shuffled != house()
    assert Counter(label for one in shuffled for label in one.labels) == Counter(
        label for one in house() for label in one.labels
    )
    assert [one.observations for one in shuffled] == [one.observations for one in house()]


def test_columns_drawn_independently_are_independent():
    random = np.random.default_rng(0)
    first, second = (random.integers(0, 30, 2000).astype(np.int32) for _ in range(2))
    assert are_independent(first, second)
    assert not are_independent(
        first, np.where(random.random(2000) < 0.2, first, second).astype(np.int32)
    )


def test_outputs_drawn_per_episode_are_a_missing_label_and_not_chance():
    """The passenger of a taxi is hidden; earlier attempts to pick up predict a little."""
    env = gym.wrappers.TransformObservation(
        gym.make("Taxi-v4"), lambda state: state // 20 * 4 + state % 4, gym.spaces.Discrete(100)
    )
    depots = {0: "red", 4: "green", 20: "yellow", 23: "blue"}
    traces = rs.collect(
        env, episodes=150, seed=0, labeling_fn=lambda seen, action, now: depots.get(now // 4)
    )
    (finding,) = (
        warning for warning in rs.diagnose(traces).warnings if warning.kind == "missing-label"
    )
    assert finding.figures["output"] == "reward"
    assert [dependence["kind"] for dependence in finding.figures["depends_on"]] == ["last-time"]
    assert "drawn at its start" in finding.text


@pytest.mark.parametrize(("feature", "is_dependence"), [(0, False), (300, True)])
def test_a_single_feature_needs_less_evidence(feature, is_dependence):
    features = [Feature("seen", str(number), "") for number in range(300)]
    features.append(Feature("last-time", None, ""))
    table = np.array([(feature, query, 2.0, 9.0, 4.0) for query in range(5)]).T
    assert _over_all_queries(features, table).shape[1] == (5 if is_dependence else 0)
