"""Findings about labels and rewards: whether labels are events, and rewards distinguish policies."""

import pytest
from diagnosed import finding_of, trace

import resolvent as rs

ROOMS = ["hall", "attic"] * 10


def labelled(labels, observations=ROOMS, times=1):
    return rs.TraceSet([trace(observations, labels)] * times)


def test_traces_without_any_label():
    assert finding_of(labelled([None] * 20), "no-labels").figures == {"labels": 1, "positions": 20}
    assert finding_of(labelled([None] * 19 + ["key"]), "no-labels") is None


def test_a_label_at_every_step():
    finding = finding_of(labelled(["tick"] * 20), "constant-label")
    assert finding.figures == {"labels": 1, "positions": 20, "always": ["tick"]}
    partly = finding_of(labelled([{"tick"}, {"tick", "key"}] * 10), "constant-label")
    assert partly.figures["always"] == ["tick"]
    assert "Every label holds tick" in partly.text
    assert finding_of(labelled([{"tick"}, {"key"}] * 10), "constant-label") is None
    assert finding_of(labelled([None] * 20), "constant-label") is None


def test_a_different_label_at_every_step():
    finding = finding_of(labelled([f"at {place}" for place in range(20)]), "labels-all-differ")
    assert finding.severity == "warning"
    assert finding.figures == {"labels": 20, "positions": 20}
    halved = [f"at {place % 9}" for place in range(20)]
    assert finding_of(labelled(halved), "labels-all-differ") is None


def test_a_restarting_clock_as_label_is_detected():
    clock = labelled([f"at {place}" for place in range(20)], times=5)
    assert "within a trace" in finding_of(clock, "labels-all-differ").text
    twice = [f"at {place}" for place in range(19)] + ["at 0"]
    assert finding_of(labelled(twice, times=5), "labels-all-differ") is None


def test_labels_of_short_traces_are_not_diagnosed():
    assert finding_of(labelled(["a", "b", "c"], ROOMS[:3], times=9), "labels-all-differ") is None


def test_labels_that_repeat_the_observations():
    finding = finding_of(labelled(["in the hall", None] * 10), "labels-are-observations")
    assert finding.severity == "note"
    assert finding.figures == {"labels": 2, "positions": 20}
    other = ["in the hall", None] * 9 + [None, None]
    assert finding_of(labelled(other), "labels-are-observations") is None
    assert finding_of(labelled([None] * 20, ["hall"] * 20), "labels-are-observations") is None


def paid(*rewards):
    return rs.TraceSet([trace(["hall"] * (len(rewards) + 1), rewards=rewards)])


def test_no_rewards_at_all():
    silent = rs.Trace(["hall", "hall"], [None, None], ["go"])
    assert finding_of(rs.TraceSet([silent]), "no-rewards").severity == "note"
    assert finding_of(paid(0, 1), "no-rewards") is None


def test_rewards_that_never_vary():
    finding = finding_of(paid(2, 2, 2), "constant-reward")
    assert finding.severity == "warning"
    assert finding.figures == {"reward": 2.0, "steps": 3}
    assert "a plan would be meaningless" in finding.text
    assert finding_of(paid(2, 2, 1), "constant-reward") is None


def test_rewards_that_hardly_ever_vary():
    finding = finding_of(paid(*[0] * 996, *[1] * 4), "rare-reward")
    assert finding.severity == "warning"
    assert finding.figures == {"reward": 0.0, "others": 4, "steps": 1000}
    assert finding_of(paid(*[0] * 995, *[1] * 5), "rare-reward") is None
    assert finding_of(paid(*[0] * 96, *[1] * 4), "rare-reward") is None  # few, but of few steps


def corridors(pay, lengths=range(3, 33)):
    """Corridors of two rooms, with a reward at the exit after some time."""
    return rs.TraceSet(
        trace(
            ["room"] * length + ["exit"],
            actions=["wait"] * (length - 1) + ["leave"],
            rewards=[0] * (length - 1) + [pay(length)],
            terminated=True,
        )
        for length in lengths
    )


@pytest.mark.parametrize(
    ("pay", "direction"), [(lambda t: 1 - 0.9 * t / 100, "fall"), (float, "rise")]
)
def test_rewards_that_depend_on_the_step_number(pay, direction):
    finding = finding_of(corridors(pay), "reward-by-time")
    assert finding.severity == "warning"
    assert finding.figures == {
        "direction": direction,
        "changes": 29,
        "in_that_direction": 29,
        "query": "(room, leave)",
        "rewards": 30,
    }


@pytest.mark.parametrize(
    "pay",
    [
        lambda t: 1.0,
        lambda t: (t * 7) % 5,  # up and down
        lambda t: 1.0 if t < 15 else 2.0,  # before and after an event
    ],
)
def test_rewards_that_do_not_depend_on_the_step_number(pay):
    assert finding_of(corridors(pay), "reward-by-time") is None


def test_different_rewards_at_one_step_number_are_no_clock():
    lottery = rs.TraceSet(trace(["hall", "hall"], rewards=[reward]) for reward in range(30))
    assert finding_of(lottery, "reward-by-time") is None


def test_few_rewards_are_not_diagnosed():
    assert finding_of(corridors(float, range(3, 13)), "reward-by-time") is None
    assert finding_of(corridors(float, range(3, 14)), "reward-by-time").figures["changes"] == 10


def test_rewards_that_never_repeat():
    finding = finding_of(paid(*range(600), *[0] * 400), "rewards-all-differ")
    assert finding.severity == "warning"
    assert finding.figures == {"once": 599, "rewards": 600, "steps": 1000}
    assert "such as 1" in finding.text
    assert "reward_digits=N" in finding.text
    assert finding_of(paid(*range(501), *[0] * 499), "rewards-all-differ") is not None
    assert finding_of(paid(*range(500), *[0] * 500), "rewards-all-differ") is None  # 499 of 1,000
    assert finding_of(paid(*range(900)), "rewards-all-differ") is None  # too few to judge
