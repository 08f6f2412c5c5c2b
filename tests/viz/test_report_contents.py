"""What a report says, against values worked out by hand or by walking traces step by step."""

from dataclasses import replace

import gymnasium as gym
import pytest
from report_worlds import has_read

import resolvent as rs
from noisy_worlds import noisy_house
from resolvent.evaluation.evidence import collect_evidence
from resolvent.evaluation.holdout import Holdout
from resolvent.viz.report.machine import MOST_IN_MATRIX
from resolvent.viz.report.page import contents, score_summary
from resolvent.viz.report.traces import MOST_STEPS, cells_of, grid_map
from synthetic_pair import synthetic
from worlds import random_world

UNLOCKED = rs.Trace(
    ["corridor", "corridor", "cyanroom"], [[], [], ["toilet"]], ["down", "up"], [0, 0]
)


@pytest.fixture(scope="module")
def house():
    traces = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    return rs.infer(traces).machines, traces


@pytest.fixture(scope="module")
def data(house):
    pair, traces = house
    return contents(pair, collect_evidence(pair, traces))


def played(machines, traces):
    return contents(machines, collect_evidence(machines, traces))["player"]


def outcomes(trace):
    """What came of each machine's prediction, step by step."""
    return [[verdict for *_, verdict, _ in row[3:]] for row in trace["steps"]]


def test_summary_of_the_house(house, data):
    _, traces = house
    assert data["summary"]["figures"] == [
        ["transition states", "2"],
        ["reward states", "2"],
        ["traces", "200"],
        ["steps", f"{sum(map(len, traces)):,}"],
    ]
    assert data["summary"]["verdict"]["kind"] == "unseen"  # nothing was held out
    text = " ".join(data["summary"]["sentences"])
    assert "Labels that change nothing in the Transition Machine: no event." in text
    assert "from these traces, strategy auto" in text


def test_what_the_search_was_spared(house, data):
    pair, traces = house
    for machine, shown in zip((pair.transition, pair.reward), data["machines"], strict=True):
        left_out = shown["left_out"]
        assert (left_out["labels"], left_out["label_count"]) == (["no event"], 1)
        assert len(left_out["outputs"]) == left_out["output_count"] == len(machine.constant_outputs)
    seen = {
        (trace.observations[step], trace.actions[step], trace.observations[step + 1])
        for trace in traces
        for step in range(len(trace))
    }
    always = {
        (f"({observation}, {action})", following)
        for observation, action, following in seen
        if (observation, action) != ("corridor", "up")
    }
    assert {tuple(row) for row in data["machines"][0]["left_out"]["outputs"]} == always


def test_of_very_many_some_are_listed():
    labels = [f"noise {number}" for number in range(400)]
    seen = [f"place {number}" for number in range(401)]
    trace = rs.Trace(seen, [None, *labels], ["go"] * 400, [0] * 400)
    pair = rs.infer(rs.TraceSet([trace]), options=rs.InferenceOptions(trivial=labels)).machines
    left_out = contents(pair, collect_evidence(pair, rs.TraceSet([trace])))["machines"][0]
    assert (len(left_out["left_out"]["labels"]), left_out["left_out"]["label_count"]) == (300, 401)
    assert (len(left_out["left_out"]["outputs"]), left_out["left_out"]["output_count"]) == (
        300,
        400,
    )


def test_of_one_trace_nothing_is_the_longest(house):
    pair, traces = house
    (one,) = played(pair, traces[:1])["traces"]
    assert one["why"] == "the only one"


def test_states_of_the_house(house, data):
    _, traces = house
    keyed = sum(has_read(trace, step, "key") for trace in traces for step in range(len(trace)))
    start, key = data["machines"][0]["states"]
    assert (start["history"], key["history"]) == ("start", "key")
    assert start["outputs"] == [{"query": "(corridor, up)", "output": "corridor", "others": 1}]
    assert key["outputs"] == [{"query": "(corridor, up)", "output": "cyanroom", "others": 1}]
    assert (start["steps"], key["steps"]) == (traces.steps - keyed, keyed)
    assert start["unread"] == ["toilet"]  # locked away without the key
    start, toilet = data["machines"][1]["states"]
    assert (start["history"], toilet["history"]) == ("start", "toilet")
    assert [one["query"] for one in toilet["outputs"]] == ["(limegreenroom, sit) in TM state 1"]
    assert toilet["outputs"][0]["output"] == "1"


def test_matrix_of_the_house(house, data):
    _, traces = house
    asked = sum(
        (seen, done) == ("corridor", "up")
        for trace in traces
        for seen, done in zip(trace.observations, trace.actions, strict=False)
    )
    proof = data["machines"][0]["proof"]
    assert proof["matrix"] == [[0, 1, 1, asked, 0]]
    assert proof["weakest"][0]["by"] == "(corridor, up)"
    assert sorted(proof["weakest"][0]["outputs"]) == ["corridor", "cyanroom"]
    assert not proof["complete"]
    assert "transition coverage: never read: toilet in state 0" in proof["completeness"]


def test_replays_walk_as_the_traces_do(house, data):
    _, traces = house
    player = data["player"]
    texts = player["texts"]
    lengths = [len(trace) for trace in traces]
    numbers = [one["number"] for one in player["traces"]]
    assert {lengths.index(min(lengths)), lengths.index(max(lengths))} <= set(numbers)
    assert len(set(texts)) == len(texts)
    for one in player["traces"]:
        trace = traces[one["number"]]
        assert (one["length"], one["first"], len(one["steps"])) == (len(trace), 0, len(trace))
        for step, row in enumerate(one["steps"]):
            words = [texts[number] for number in row[:3]]
            assert words[0] == trace.observations[step]
            assert words[2] == trace.actions[step]
            for (happened, predicted, state, *outcome), value, event in zip(
                row[3:],
                (trace.observations[step + 1], f"{trace.rewards[step]:g}"),
                ("key", "toilet"),
                strict=True,
            ):
                assert texts[happened] == texts[predicted] == value
                assert state == has_read(trace, step, event)
                assert outcome == [1, 0]  # right, and not assumed


def test_a_mismatch_is_shown(house):
    pair, _ = house
    traces = rs.TraceSet([UNLOCKED])
    data = score_summary(pair.score(traces))
    assert data["kind"] == "wrong"
    assert "('corridor', 'up')" in data["text"]
    player = played(pair, traces)
    (one,) = player["traces"]
    assert "has the first mismatch" in one["why"]
    assert outcomes(one) == [[1, 1], [0, 1]]
    happened, predicted, *_ = one["steps"][1][3]
    assert (player["texts"][predicted], player["texts"][happened]) == ("corridor", "cyanroom")


def test_what_was_never_shown_is_no_prediction(house):
    pair, _ = house
    calm = rs.Trace(["corridor"] * 3, [[]] * 3, ["down"] * 2, [0] * 2)
    traces = rs.TraceSet([rs.Trace(["corridor", "attic"], [[], []], ["fly"], [0]), calm])
    assert score_summary(pair.score(traces)) == {
        "kind": "unseen",
        "text": "No prediction is wrong; for 1 step there is none.",
    }
    player = played(pair, traces)
    (shortest,) = [one for one in player["traces"] if one["number"] == 0]
    assert outcomes(shortest) == [[-1, -1]]
    assert "never seen" in player["texts"]


def test_of_a_long_trace_the_part_with_the_mismatch_is_kept(house):
    pair, _ = house
    calm = 3 * MOST_STEPS
    trace = rs.Trace(
        ["corridor"] * (calm + 1) + ["cyanroom"],
        [None] * (calm + 2),
        ["up"] * (calm + 1),
        [0] * (calm + 1),
    )
    traces = rs.TraceSet([trace])
    (one,) = played(pair, traces)["traces"]
    assert (one["length"], len(one["steps"])) == (calm + 1, MOST_STEPS // 2 + 1)
    wrong = [one["first"] + place for place, (seen, _) in enumerate(outcomes(one)) if seen == 0]
    assert wrong == [calm]


def test_the_trace_that_visits_most_states(house):
    pair, traces = house

    def visited(trace):
        steps = range(len(trace))
        return len(
            {tuple(has_read(trace, step, one) for one in ("key", "toilet")) for step in steps}
        )

    best = max(traces, key=lambda trace: (visited(trace), -len(trace)))
    (number,) = [
        one["number"]
        for one in played(pair, traces)["traces"]
        if "visits most states" in one["why"]
    ]
    assert (visited(traces[number]), len(traces[number])) == (visited(best), len(best))


def test_map_of_a_grid():
    world = random_world(3, size=6, labels=4, tm_states=4, rm_states=3)
    traces = world.rollouts(300, 0, 60)
    pair = rs.infer(traces).machines
    drawn = grid_map(pair, collect_evidence(pair, traces))
    assert (drawn["x"], drawn["y"]) == ([0, 6], [0, 6])
    for cell in drawn["cells"]:
        observation = cell["x"] * 7 + cell["y"]
        assert cell["text"] == str(observation)
        here = world.label_at[observation]
        assert cell["labels"] == ([] if here is None else [str(here)])
        answers = [
            {
                pair.transition.output(state, observation, action)
                for state in range(pair.transition.states)
            }
            - {rs.UNSEEN}
            for action in range(4)
        ]
        assert (0 in cell["depends"]) == any(len(one) > 1 for one in answers)


def test_rooms_are_no_grid(data):
    assert data["map"] is None


def test_numbers_without_neighbours_are_no_grid():
    far = rs.Trace([0, 24, 0, 24, 3, 20], [None] * 6, ["go", "go", "on", "up", "go"], [0] * 5)
    traces = rs.TraceSet([far])
    machines = rs.infer(traces).machines
    assert grid_map(machines, collect_evidence(machines, traces)) is None


def test_what_is_left_out_of_large_machines_is_said():
    pair, traces = synthetic(70, 300, 20)
    data = contents(pair, collect_evidence(pair, traces))
    for machine in data["machines"]:
        assert machine["count"] == len(machine["states"]) == 70
        assert machine["proof"]["shown"] == MOST_IN_MATRIX
        assert len(machine["proof"]["matrix"]) == MOST_IN_MATRIX * (MOST_IN_MATRIX - 1) // 2
        assert machine["proof"]["pairs"] == 70 * 69 // 2


def test_answers_that_vary_are_shown_with_their_share():
    machines, traces = noisy_house()
    rows = contents(machines, collect_evidence(machines, traces))["machines"][0]["states"]
    data = {answer["query"]: answer["output"] for answer in rows[1]["outputs"]}
    share = machines.transition.distribution(1, "corridor", "up")["cyanroom"]
    assert data["(corridor, up)"] == f"cyanroom {share:.0%}"


def test_cells_of_observations():
    assert cells_of([0, 1, 2, 3]) == {0: (0, 0), 1: (0, 1), 2: (1, 0), 3: (1, 1)}
    assert cells_of([(0, 0), (3, 1), (2, 2), (3, 3)])[3, 1] == (3, 1)
    assert cells_of(["hall", "attic", "cellar", "stairs"]) is None


@pytest.mark.parametrize(
    ("holdout", "kind", "text"),
    [
        (None, "unseen", "but no traces could be held out to test others."),
        (Holdout(160, 0, 0, carries_over=True), "right", "and so is every step of 160 held-out"),
        (Holdout(160, 0, 0, carries_over=True, rare=0), "unseen", "but none has a rare outcome."),
        (Holdout(160, 0, 0, carries_over=True, rare=8), "right", "8 of them with a rare outcome."),
        (
            Holdout(160, 4, 4, carries_over=True, rare=8, rare_failures=3),
            "unseen",
            "but 4 of 160 held-out traces (2%) fail; of 8 with a rare outcome 3 fail.",
        ),
        (Holdout(9, 0, 0), "right", "Every step of every trace is predicted, and right."),
    ],
)
def test_the_banner_is_green_only_if_held_out_traces_are_right(house, holdout, kind, text):
    machines, traces = house
    evidence = replace(collect_evidence(machines, traces), holdout=holdout)
    verdict = contents(machines, evidence)["summary"]["verdict"]
    assert verdict["kind"] == kind
    assert text in verdict["text"]
