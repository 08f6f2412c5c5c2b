import gymnasium as gym
import pytest
from diagnosed import trace

import resolvent as rs
from built_in_worlds import EPISODES, enough_traces
from resolvent.evaluation.diagnosis.findings import Severity


@pytest.mark.parametrize("name", EPISODES)
def test_ordinary_traces_of_built_in_worlds_deserve_no_warning(name):
    env = gym.make(f"resolvent/{name}-v0")
    traces, timing = enough_traces(env, name), env.unwrapped.timing
    assert rs.diagnose(traces, timing=timing).warnings == ()
    assert rs.infer(traces, timing=timing).warnings == ()


def test_a_thousand_traces_of_the_papers_large_world_deserve_none():
    traces = rs.collect(gym.make("resolvent/RandomWorld-v0"), episodes=1_000, seed=0)
    assert rs.diagnose(traces).findings == ()


def test_random_walks_without_reward_have_a_finding():
    """In the office plants end nearly every random walk before the mail is brought."""
    traces = rs.collect(gym.make("resolvent/OfficeMail-v0"), episodes=500, seed=0)
    assert [finding.kind for finding in rs.diagnose(traces).findings] == ["constant-reward"]
    assert [warning.kind for warning in rs.infer(traces).warnings] == ["constant-reward"]


def test_the_gravest_come_first():
    traces = rs.TraceSet([trace(["hall", "hall"]), trace(["hall", "attic"])])
    severities = [finding.severity for finding in rs.diagnose(traces).findings]
    by_gravity = [Severity.ERROR, Severity.WARNING, Severity.NOTE]
    assert severities == sorted(severities, key=by_gravity.index)
    assert set(severities) == set(by_gravity)


def test_no_traces_are_refused():
    with pytest.raises(rs.TraceError, match="no traces to diagnose"):
        rs.diagnose(rs.TraceSet())


def test_a_folder_is_looked_at_from_its_first_file_on(tmp_path, monkeypatch):
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


def test_outputs_are_those_that_are_asked_for():
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


def test_of_a_log_the_outputs_are_diagnosed_that_infer_learns():
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
def test_what_is_no_traces_is_refused(given):
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
def test_what_cannot_be_meant_is_refused(options, error, message):
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
