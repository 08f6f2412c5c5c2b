"""Findings about traces: are there enough, do they repeat, are labels events, do rewards vary?"""

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


def test_a_constant_reward_counts_the_steps_of_episodes_that_end():
    ended = rs.Trace(["hall"] * 4, [None] * 4, ["go"] * 3, [1, 1, 1], terminated=True)
    finding = finding_of(rs.TraceSet([ended]), "constant-reward")
    assert finding.severity == "note"
    assert (
        finding.text
        == "The reward is 1.0 at each of 3 steps: only the length of an episode matters."
    )
    nothing = rs.Trace(["hall"] * 4, [None] * 4, ["go"] * 3, [0, 0, 0], terminated=True)
    assert finding_of(rs.TraceSet([nothing]), "constant-reward").severity == "warning"


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


def test_one_long_log():
    log = trace(["a", "b"] * 50)
    assert finding_of(rs.TraceSet([log]), "one-long-log").figures == {"steps": 99}
    assert "search" in finding_of(rs.TraceSet([log]), "one-long-log").text
    assert finding_of(rs.TraceSet([log, log]), "one-long-log") is None


def test_few_traces_with_label_sequences_that_occur_once():
    """Read before steps: nothing, x, x y in the first; nothing, x, x z in the second."""
    few = rs.TraceSet([trace("abcd", [None, "x", last, None]) for last in "yz"])
    finding = finding_of(few, "few-traces")
    assert finding.severity == "note"
    assert finding.figures == {"traces": 2, "sequences": 4, "sequences_once": 2}
    assert finding_of(rs.TraceSet([few[0]] * 20), "few-traces") is None
    assert finding_of(few[:1], "few-traces") is None


def test_traces_too_short_to_read_a_label():
    single = rs.TraceSet([trace("ab", ["x", "y"])] * 3)
    assert finding_of(single, "short-traces").severity == "warning"
    assert finding_of(single, "short-traces", timing="current-with-initial").severity == "note"
    double = rs.TraceSet([trace("abc")] * 3)
    assert finding_of(double, "short-traces").severity == "note"
    assert finding_of(double, "short-traces").figures == {"median": 2.0, "longest": 2}
    assert finding_of(rs.TraceSet([trace("abcd")] * 3), "short-traces") is None


def test_no_trace_terminated():
    cut = rs.TraceSet([trace("abc", truncated=True), trace("ab")])
    assert finding_of(cut, "never-terminated").figures == {"traces": 2, "truncated": 1}
    ended = rs.TraceSet([trace("abc", truncated=True), trace("ab", terminated=True)])
    assert finding_of(ended, "never-terminated") is None


def test_the_same_trace_again_and_again():
    ways = [trace("abc"), trace("abd"), trace("abe"), trace("abf"), trace("abg"), trace("abh")]
    finding = finding_of(rs.TraceSet(ways * 2), "repeated-traces")
    assert finding.severity == "note"
    assert finding.figures == {"traces": 12, "different": 6}
    assert finding_of(rs.TraceSet(ways * 2 + [trace("abi")]), "repeated-traces") is None
    mirrored = [trace("abac"), trace("acab")]  # equal in length and in the sums of their codes
    assert finding_of(rs.TraceSet(mirrored * 2), "repeated-traces").figures["different"] == 2
    monotonous = finding_of(rs.TraceSet(ways[:5] * 4), "repeated-traces")
    assert monotonous.severity == "warning"
    assert finding_of(rs.TraceSet(ways * 4), "repeated-traces").severity == "note"


def readings(number, digits=None, seen=0.0):
    """Traces of five steps with numbers that never recur unless they are rounded."""
    return rs.TraceSet(
        trace([seen + round((7 * one + place) / 1000, digits or 9) for place in range(6)])
        for one in range(number)
    )


def test_continuous_readings_are_reported_with_a_remedy():
    finding = finding_of(readings(10), "unique-observations")
    assert finding.severity == "warning"
    assert finding.figures == {"values": 60, "once": 60, "positions": 60, "fractions": True}
    assert "60 of 60 observations occur once" in finding.text
    assert "Round them" in finding.text


def test_rounded_readings_repeat():
    assert finding_of(readings(10, digits=1), "unique-observations") is None
    assert finding_of(readings(10, digits=1), "hardly-repeats") is None


def test_ids_are_no_continuous_readings():
    ids = rs.TraceSet(trace([f"{one}-{place}" for place in range(4)]) for one in range(9))
    finding = finding_of(ids, "unique-observations")
    assert finding.figures["fractions"] is False
    assert "an id" in finding.text
    whole = rs.TraceSet(trace([(1.0, 4 * one + place) for place in range(4)]) for one in range(9))
    assert finding_of(whole, "unique-observations").figures["fractions"] is False


def test_without_repetition_all_fresh_steps_are_unseen():
    finding = finding_of(readings(10), "hardly-repeats")
    assert finding.severity == "warning"
    assert finding.figures == {
        "share": 1.0,
        "unseen": 50,
        "steps": 50,
        "queries": 50,
        "queries_once": 50,
    }
    assert finding.text.startswith("Hardly any query repeats: on new traces about 100%")


def test_queries_of_a_single_trace_are_unseen_in_others():
    """Every trace alternates between rooms of its own: each query occurs five times."""
    own = rs.TraceSet(trace([(one, place % 2) for place in range(11)]) for one in range(8))
    finding = finding_of(own, "hardly-repeats")
    assert (finding.figures["share"], finding.figures["queries_once"]) == (1.0, 0)
    assert finding_of(own, "unique-observations") is None


def test_the_share_counts_steps_that_no_other_trace_has():
    """Of the queries of 4 × 5 steps two occur in a single trace, one of them once."""
    common = ["a", "b", "c", "d", "e", "f"]
    traces = [trace(common)] * 3 + [trace(["a", "b", "c", "d", "x", "y"])]
    finding = finding_of(rs.TraceSet(traces), "hardly-repeats")
    assert (finding.figures["unseen"], finding.figures["steps"]) == (1, 20)
    assert finding.severity == "note"
    much = rs.TraceSet([*traces, trace(["x", "z", "z", "z", "z", "z"])])
    finding = finding_of(much, "hardly-repeats")
    assert (finding.figures["unseen"], finding.figures["steps"]) == (4, 25)
    assert finding.severity == "warning"
    assert finding.text.startswith("Many queries do not repeat: on new traces about 16%")


def test_in_one_trace_queries_that_occur_once_are_unseen():
    finding = finding_of(rs.TraceSet([trace(["a", "b", "a", "b", "c", "d"])]), "hardly-repeats")
    assert (finding.figures["unseen"], finding.figures["steps"]) == (1, 5)
