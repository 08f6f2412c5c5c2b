import pytest
from diagnosed import finding_of, trace

import resolvent as rs


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
def test_rewards_that_go_by_the_clock(pay, direction):
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
def test_rewards_that_do_not(pay):
    assert finding_of(corridors(pay), "reward-by-time") is None


def test_different_rewards_at_the_same_time_are_no_clock():
    lottery = rs.TraceSet(trace(["hall", "hall"], rewards=[reward]) for reward in range(30))
    assert finding_of(lottery, "reward-by-time") is None


def test_few_rewards_are_not_judged():
    assert finding_of(corridors(float, range(3, 13)), "reward-by-time") is None
    assert finding_of(corridors(float, range(3, 14)), "reward-by-time").figures["changes"] == 10


def test_rewards_that_never_come_back():
    finding = finding_of(paid(*range(600), *[0] * 400), "rewards-all-differ")
    assert finding.severity == "warning"
    assert finding.figures == {"once": 599, "rewards": 600, "steps": 1000}
    assert "such as 1" in finding.text
    assert "reward_digits=N" in finding.text
    assert finding_of(paid(*range(501), *[0] * 499), "rewards-all-differ") is not None
    assert finding_of(paid(*range(500), *[0] * 500), "rewards-all-differ") is None  # 499 of 1,000
    assert finding_of(paid(*range(900)), "rewards-all-differ") is None  # too few to judge
