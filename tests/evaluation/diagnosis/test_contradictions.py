import random

import gymnasium as gym
from diagnosed import trace

import resolvent as rs


def findings(traces, kind, **options):
    """The findings of a kind, by the output they are about."""
    diagnosis = rs.diagnose(traces, **options)
    return {
        finding.figures["output"]: finding for finding in diagnosis.findings if finding.kind == kind
    }


def doors(rewards=(0, 0), first=(None, None)):
    """Three episodes whose door leads to the attic and two whose door leads to the cellar."""
    return rs.TraceSet(
        trace(["hall", room], [label, None], rewards=[reward])
        for room, label, reward, number in zip(
            ("attic", "cellar"), first, rewards, (3, 2), strict=True
        )
        for _ in range(number)
    )


def test_first_steps_that_differ_are_reported_with_their_outcomes():
    finding = findings(doors(), "random-start")["observation"]
    assert finding.severity == "error"
    assert finding.figures == {
        "output": "observation",
        "query": "(hall, go)",
        "outcomes": {"attic": 3, "cellar": 2},
        "queries": 1,
        "first_labels_help": False,
    }
    assert "attic (3×) or cellar (2×)" in finding.text
    assert "No later label can help" in finding.text


def test_rewards_at_the_start_are_reported_separately():
    same = rs.TraceSet(trace(["hall", "hall"], rewards=[reward]) for reward in (0, 1, 1))
    assert [*findings(same, "random-start")] == ["reward"]
    assert findings(same, "random-start")["reward"].figures["outcomes"] == {"1.0": 2, "0.0": 1}


def test_the_first_label_may_distinguish_starts():
    labelled = doors(first=("up", "down"))
    assert findings(labelled, "random-start")["observation"].figures["first_labels_help"]
    assert findings(labelled, "random-start", timing="current-with-initial") == {}
    unlike = findings(doors(), "random-start", timing="current-with-initial")["observation"]
    assert "after the same first label" in unlike.text


def test_later_steps_are_not_initial():
    later = [trace(["hall", "stairs", room], actions=["in", "up"]) for room in ("attic", "roof")]
    assert findings(rs.TraceSet(later), "random-start") == {}
    assert [*findings(rs.TraceSet(later), "contradictions")] == ["observation"]


def test_the_share_of_steps_that_labels_leave_open():
    """After the label "key" the door leads to the attic 6 times and stays shut twice."""
    traces = rs.TraceSet(
        trace(["hall", "hall", room], [None, "key", None], ["take", "open"], [0, 0])
        for room in ["attic"] * 6 + ["hall"] * 2
    )
    finding = findings(traces, "contradictions")["observation"]
    assert finding.severity == "error"
    assert finding.figures == {
        "output": "observation",
        "steps": 16,
        "repeated": 16,
        "differing": 2,
        "share": 0.125,
        "rate_where_it_happens": 0.25,
        "queries": 1,
        "query": "(hall, open)",
        "outcomes": {"attic": 6, "hall": 2},
        "explained_by_counting_steps": False,
        "fitting_timing": None,
    }
    assert "Label that event" in finding.text
    assert "reward" not in findings(traces, "contradictions")


def test_rare_outcomes_look_like_noise():
    traces = rs.TraceSet(trace(["hall", room]) for room in ["attic"] * 39 + ["hall"])
    finding = findings(traces, "contradictions")["observation"]
    assert finding.figures["rate_where_it_happens"] == 1 / 40
    assert "as with noise" in finding.text
    assert "or there is noise" in findings(traces, "random-start")["observation"].text


def test_labels_that_distinguish_outcomes_leave_no_contradiction():
    traces = rs.TraceSet(
        trace(["hall", "hall", room], [None, label, None], ["take", "open"])
        for label, room in (("key", "attic"), (None, "hall"), ("key", "attic"))
    )
    assert rs.diagnose(traces).warnings[1:] == ()  # nothing was ever paid
    assert findings(traces, "contradictions") == {}


def test_outputs_explained_only_by_the_step_number_are_a_warning():
    bell = rs.TraceSet([trace(["hall"] * 4, rewards=[0, 0, 1])] * 2)
    finding = findings(bell, "contradictions")["reward"]
    assert finding.severity == "warning"
    assert finding.figures["explained_by_counting_steps"]
    assert rs.infer(bell).machines.reward.states == 3


def test_another_timing_that_fits_is_named():
    late = rs.TraceSet(
        trace(["hall", "hall", room], [first, None, None], ["wait", "go"])
        for first, room in (("up", "attic"), ("down", "cellar"))
    )
    finding = findings(late, "contradictions")["observation"]
    assert finding.figures["fitting_timing"] == "current-with-initial"
    assert "--timing current-with-initial" in finding.text
    assert findings(late, "contradictions", timing="current-with-initial") == {}


def rooms(drawn_once):
    """Episodes of a hall with two doors, one of which is locked; which one may be drawn once."""
    chance = random.Random(0)
    for _ in range(30):
        unlocked, observations, actions = chance.choice("lr"), ["hall"], []
        for _ in range(12):
            if not drawn_once:
                unlocked = chance.choice("lr")
            actions.append(chance.choice("lr"))
            opens = observations[-1] == "hall" and actions[-1] == unlocked
            observations.append("room" if opens else "hall")
        yield trace(observations, actions=actions)


def test_a_layout_drawn_per_episode_is_detected():
    finding = findings(rs.TraceSet(rooms(drawn_once=True)), "layouts-differ")["observation"]
    assert finding.severity == "warning"
    assert finding.figures["queries"] == 2  # either door of the hall
    assert finding.figures["differing_within"] == 0
    assert finding.figures["differing_between"] > 30
    assert "drawn at each reset" in finding.text


def test_a_random_world_is_not_reported_as_a_layout():
    traces = rs.TraceSet(rooms(drawn_once=False))
    assert findings(traces, "layouts-differ") == {}
    assert "observation" in findings(traces, "contradictions")


def test_missing_labels_are_not_reported_as_a_layout():
    house = gym.make("resolvent/House-v0")
    traces = rs.collect(house, episodes=100, seed=0, labeling_fn=lambda room: set())
    assert findings(traces, "contradictions").keys() == {"observation", "reward"}
    assert findings(traces, "layouts-differ") == {}
