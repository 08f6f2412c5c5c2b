"""Diagnosis of traces before inference, and the warnings of inferred machines."""

from collections import Counter

import gymnasium as gym
import pandas as pd
import pytest
from diagnosed import trace

import resolvent as rs
import vending_machine
from built_in_worlds import EPISODES, enough_traces
from resolvent.evaluation.diagnosis import diagnose as inference_warnings
from resolvent.evaluation.diagnosis.findings import Severity


@pytest.mark.parametrize("name", EPISODES)
def test_built_in_worlds_have_no_warnings(name):
    env = gym.make(f"resolvent/{name}-v0")
    traces, timing = enough_traces(env, name), env.unwrapped.timing
    assert rs.diagnose(traces, timing=timing).warnings == ()
    assert rs.infer(traces, timing=timing).warnings == ()


def test_the_papers_large_world_has_no_warnings():
    traces = rs.collect(gym.make("resolvent/RandomWorld-v0"), episodes=1_000, seed=0)
    assert rs.diagnose(traces).findings == ()


def test_random_walks_without_reward_have_a_finding():
    """In the office plants end nearly every random walk before the mail is brought."""
    traces = rs.collect(gym.make("resolvent/OfficeMail-v0"), episodes=500, seed=0)
    assert [finding.kind for finding in rs.diagnose(traces).findings] == ["constant-reward"]
    assert [warning.kind for warning in rs.infer(traces).warnings] == ["constant-reward"]


def test_the_most_severe_findings_come_first():
    traces = rs.TraceSet([trace(["hall", "hall"]), trace(["hall", "attic"])])
    severities = [finding.severity for finding in rs.diagnose(traces).findings]
    by_gravity = [Severity.ERROR, Severity.WARNING, Severity.NOTE]
    assert severities == sorted(severities, key=by_gravity.index)
    assert set(severities) == set(by_gravity)


def test_no_traces_are_refused():
    with pytest.raises(rs.TraceError, match="no traces to diagnose"):
        rs.diagnose(rs.TraceSet())


def test_a_folder_is_diagnosed_from_its_first_file_on(tmp_path, monkeypatch):
    for name in "abc":
        rs.TraceSet([trace(["hall", name])]).save(tmp_path / f"{name}.parquet")
    folder = rs.scan_traces(tmp_path)
    whole = rs.diagnose(folder)
    assert (whole.traces, whole.steps) == (3, 3)
    assert whole == rs.diagnose(rs.read_traces(tmp_path))
    monkeypatch.setattr("resolvent.evaluation.diagnosis.diagnose.MAX_STEPS", 2)
    part = rs.diagnose(folder)
    assert part.traces == 2
    (note,) = [finding for finding in part.findings if finding.kind == "part-of-folder"]
    assert note.figures == {"files": 3, "examined": 2}


def test_only_requested_outputs_are_diagnosed():
    traces = rs.TraceSet(
        trace(["hall", "hall", "hall"], rewards=[1, 1], columns={"cost": [cost, 0]})
        for cost in (1, 2)
    )

    def kinds_of(**options):
        warnings = rs.diagnose(traces, **options).warnings
        return [(one.kind, one.figures.get("output")) for one in warnings]

    assert kinds_of() == [("constant-reward", None)]
    assert kinds_of(outputs=["observation"]) == []
    assert kinds_of(outputs=["cost"])[0] == ("random-start", "cost")


def log(*answers):
    """Make traces of a log: in each run, coins are the input and these are the outputs."""
    return rs.TraceSet(
        rs.Trace(
            ["nothing"] * (len(run) + 1),
            [None] * (len(run) + 1),
            ["coin"] * len(run),
            columns={"answer": run, "fault": [0] * len(run)},
        )
        for run in answers
    )


def test_the_outputs_of_a_log_are_those_that_infer_learns():
    drinks = log(["tea", "tea"], ["coffee", "tea"])
    diagnosis = rs.diagnose(drinks)
    errors = [finding for finding in diagnosis.findings if finding.severity is Severity.ERROR]
    assert {error.figures["output"] for error in errors} == {"answer"}
    assert errors[0].figures["outcomes"] == {"tea": 1, "coffee": 1}
    with pytest.raises(rs.ContradictoryTraces):
        rs.infer(drinks, noise="none")
    assert rs.diagnose(drinks, outputs=["fault"]).warnings == ()
    assert list(rs.infer(drinks, outputs=["fault"]).machines) == ["fault"]


def test_a_log_is_not_expected_to_have_rewards():
    kinds = {finding.kind for finding in rs.diagnose(log(["tea", "tea"])).findings}
    assert "no-rewards" not in kinds
    rooms = rs.TraceSet([rs.Trace(["hall", "attic"], [None, None], ["go"])])
    assert "no-rewards" in {finding.kind for finding in rs.diagnose(rooms).findings}


@pytest.mark.parametrize("as_path", [str, lambda path: path])
def test_traces_may_be_a_path_or_a_list(tmp_path, as_path):
    drinks = log(["tea", "tea"], ["coffee", "tea"])
    path = tmp_path / "drinks.parquet"
    drinks.save(path)
    assert rs.diagnose(as_path(path)) == rs.diagnose(drinks) == rs.diagnose(list(drinks))


@pytest.mark.parametrize("given", [None, 7, b"traces", ["hall"]])
def test_other_values_than_traces_are_refused(given):
    with pytest.raises(rs.TraceError, match=r"is not a set of traces: give a TraceSet, [^\n]*$"):
        rs.diagnose(given)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"timing": "never"}, rs.OptionError, "unknown timing 'never': choose one of current"),
        ({"outputs": "cost"}, rs.OptionError, "outputs must be a list"),
        ({"outputs": ["cost"]}, rs.TraceError, "cost"),
    ],
)
def test_invalid_options_of_diagnose_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        rs.diagnose(rs.TraceSet([trace(["hall", "hall"])]), **options)


def test_computed_labels_distinguish_what_recorded_ones_do_not():
    """The cue of a maze decides at the end; unlabelled, both ends contradict each other."""
    mazes = rs.TraceSet(
        rs.Trace([cue, "hall", end], [None] * 3, ["go", "up"], [0, int(cue == "left")])
        for cue, end in (("left", "gold"), ("right", "trap"))
        for _ in range(3)
    )

    def errors(**options):
        return [
            finding.kind
            for finding in rs.diagnose(mazes, **options).findings
            if finding.severity == "error"
        ]

    assert set(errors()) == {"contradictions"}
    assert errors(labels="observation") == []
    assert errors(labels="auto") == []
    assert set(errors(labels="action")) == {"contradictions"}
    kinds = {finding.kind for finding in rs.diagnose(mazes, labels="observation").findings}
    assert not kinds & {"no-labels", "labels-are-observations"}


def kinds(result):
    return [warning.kind for warning in result.warnings]


def readings(number, apart=1):
    """Traces of four steps, each with a start that distinguishes it from all others."""
    return [
        trace([(one * apart + place) / 8 for place in range(5)], rewards=[0, 0, 1, 2])
        for one in range(number)
    ]


def test_a_machine_that_memorized_unique_steps_has_a_warning():
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


def test_labels_that_never_repeat():
    named = trace(["a", "b"] * 15, [f"{at}" for at in range(30)], rewards=[0, 1] * 14 + [0])
    assert "labels-all-differ" in kinds(rs.infer(rs.TraceSet([named])))


def test_folders_have_the_same_warnings(tmp_path):
    for name, number in (("a", 10), ("b", 7)):
        rs.TraceSet(readings(number, apart=5)).save(tmp_path / f"{name}.parquet")
    scanned = rs.infer(rs.scan_traces(tmp_path))
    # The seven of the second file are among the ten of the first: three are alone, with 12 steps.
    assert kinds(scanned) == ["hardly-repeats"]
    assert scanned.warnings[0].figures["queries_once"] == 12


def test_an_update_is_diagnosed_on_all_traces():
    few = rs.infer(rs.TraceSet(readings(10, apart=5)))
    assert "hardly-repeats" in kinds(few)
    assert kinds(few.update(rs.TraceSet(readings(10, apart=5)))) == []


def drinks(sessions):
    rows = vending_machine.log(sessions, seed=0)
    table = {name: [row[name] for row in rows] for name in rows[0]}
    return rs.read_log(
        pd.DataFrame(table), episode="session", order="time", input="event", output="response"
    )


def test_a_machine_larger_than_the_world_has_a_warning():
    few, many = rs.infer(drinks(20)), rs.infer(drinks(400))
    assert many.machines["response"].states == 15 < few.machines["response"].states
    assert (kinds(few), kinds(many)) == (["held-out-errors", "rare-transitions"], [])
    _, rare = few.warnings
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
