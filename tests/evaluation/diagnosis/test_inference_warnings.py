from collections import Counter

import pandas as pd
import pytest
from diagnosed import trace

import resolvent as rs
import vending_machine
from resolvent.evaluation.diagnosis import diagnose as inference_warnings


def kinds(result):
    return [warning.kind for warning in result.warnings]


def readings(number, apart=1):
    """Traces of four steps, each with a start that distinguishes it from all others."""
    return [
        trace([(one * apart + place) / 8 for place in range(5)], rewards=[0, 0, 1, 2])
        for one in range(number)
    ]


def test_a_machine_that_explains_all_since_nothing_repeats_says_so():
    result = rs.infer(rs.TraceSet(readings(10, apart=5)))
    assert result.machines.transition.states == 1
    assert kinds(result) == ["unique-observations", "hardly-repeats"]
    unique, hardly = result.warnings
    # The last observation of a trace has no query.
    assert unique.figures == {"values": 50, "once": 40, "positions": 40, "fractions": True}
    assert hardly.figures["share"] == 1.0
    fresh = rs.TraceSet(trace([place + 0.1 for place in range(5)]) for _ in range(3))
    assert result.machines.score(fresh).transition.unseen == fresh.steps
    assert "hardly-repeats" in str(result)
    assert result.as_dict()["warnings"] == [warning.as_dict() for warning in result.warnings]


def test_repetition_within_a_trace_does_not_count():
    """Every trace alternates between rooms of its own, so that each query occurs five times."""
    own = rs.TraceSet(
        trace([(one, place % 2) for place in range(11)], rewards=[0, 1] * 5) for one in range(8)
    )
    result = rs.infer(own)
    assert kinds(result) == ["hardly-repeats"]
    assert result.warnings[0].figures["share"] == 1.0


@pytest.mark.parametrize("sampled", [1, 8, 1_000])
def test_some_traces_are_compared_with_all(monkeypatch, sampled):
    """Each of the first traces recurs at the end, outside of the sample."""
    monkeypatch.setattr(inference_warnings, "SAMPLED_STEPS", sampled)
    assert kinds(rs.infer(rs.TraceSet(readings(10, apart=5) * 2))) == []


def test_the_share_is_that_of_the_diagnosis():
    common, alone = ["a", "b", "c", "d", "e", "f"], ["x", "z", "z", "z", "z", "z"]
    traces = [trace(common, rewards=[0, 1, 2, 3, 4])] * 3 + [trace(alone, rewards=[0, 1, 1, 1, 1])]
    result = rs.infer(rs.TraceSet(traces))
    (warning,) = [
        finding
        for finding in rs.diagnose(rs.TraceSet(traces)).findings
        if finding in result.warnings
    ]
    assert warning.figures["share"] == 5 / 20


def test_a_note_is_no_warning():
    common = trace(["a", "b", "c", "d", "e", "f"], rewards=[0, 1, 2, 3, 4])
    ends = [common] * 4 + [trace(["a", "b", "c", "d", "e", "f", "g"], rewards=[0, 1, 2, 3, 4, 5])]
    notes = [finding.kind for finding in rs.diagnose(rs.TraceSet(ends)).findings]
    assert "hardly-repeats" in notes
    assert kinds(rs.infer(rs.TraceSet(ends))) == []


def test_rewards_that_never_or_hardly_ever_vary():
    flat = rs.TraceSet([trace(["a", "b"] * 5)] * 3)
    assert kinds(rs.infer(flat)) == ["constant-reward"]
    assert kinds(rs.infer(flat, outputs=["observation"])) == []
    once = rs.TraceSet([*flat] * 40 + [trace(["a", "c"], actions=["jump"], rewards=[1])])
    assert "rare-reward" in kinds(rs.infer(once))


def test_rewards_count_as_machines_see_them():
    blurred = rs.TraceSet([trace(["a", "b"] * 5, rewards=[1e-9] * 8 + [0])] * 3)
    assert kinds(rs.infer(blurred, options=rs.InferenceOptions(reward_digits=3))) == [
        "constant-reward"
    ]


def test_one_long_log_is_for_the_search():
    log = rs.TraceSet([trace(["a", "b"] * 20 + ["a"], rewards=[0, 1] * 20)])
    assert kinds(rs.infer(log)) == ["one-long-log"]
    assert kinds(rs.infer(log, strategy="search")) == []


def test_labels_that_never_come_again():
    named = trace(["a", "b"] * 15, [f"{at}" for at in range(30)], rewards=[0, 1] * 14 + [0])
    assert "labels-all-differ" in kinds(rs.infer(rs.TraceSet([named])))


def test_folders_have_the_same_warnings(tmp_path):
    for name, number in (("a", 10), ("b", 7)):
        rs.TraceSet(readings(number, apart=5)).save(tmp_path / f"{name}.parquet")
    scanned = rs.infer(rs.scan_traces(tmp_path))
    # The seven of the second file are among the ten of the first: three are alone, with 12 steps.
    assert kinds(scanned) == ["hardly-repeats"]
    assert scanned.warnings[0].figures["queries_once"] == 12


def test_an_update_is_judged_by_all_traces():
    few = rs.infer(rs.TraceSet(readings(10, apart=5)))
    assert "hardly-repeats" in kinds(few)
    assert kinds(few.update(rs.TraceSet(readings(10, apart=5)))) == []


def drinks(sessions):
    rows = vending_machine.log(sessions, seed=0)
    table = {name: [row[name] for row in rows] for name in rows[0]}
    return rs.read_log(
        pd.DataFrame(table), episode="session", order="time", input="event", output="response"
    )


def test_a_machine_that_is_larger_than_the_world_says_so():
    few, many = rs.infer(drinks(20)), rs.infer(drinks(400))
    assert many.machines["response"].states == 15 < few.machines["response"].states
    assert (kinds(few), kinds(many)) == (["rare-transitions"], [])
    (rare,) = few.warnings
    assert rare.figures["states"] == few.machines["response"].states
    assert rare.figures["machine"] == "response"
    # Counted by hand: how often each state read each input.
    machine, made = few.machines["response"], Counter()
    for session in drinks(20):
        state = 0
        for label in session.labels[1:-1]:  # no output follows the last
            made[state, label] += 1
            state = machine.step(state, label)
    assert rare.figures["transitions"] == len(made)
    assert rare.figures["rare"] == sum(count <= 2 for count in made.values())


@pytest.mark.slow
def test_search_has_no_warning_of_few_traces():
    result = rs.infer(drinks(50), strategy="search")
    assert "rare-transitions" not in kinds(result)
