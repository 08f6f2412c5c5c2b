"""A report of one machine or many, of generalized outputs, and how often it replays."""

import json
from html.parser import HTMLParser

import gymnasium as gym
import pytest
from report_worlds import has_read, lamp_machines, lit_wait, with_cost

import resolvent as rs
from resolvent.errors import ModelError
from resolvent.evaluation import evidence as collection
from resolvent.evaluation import holdout, weakness
from resolvent.evaluation.evidence import collect_evidence
from resolvent.replay import replaying
from resolvent.viz.report import traces as report_traces
from resolvent.viz.report.page import contents, score_summary


@pytest.fixture(scope="module")
def house():
    traces = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    return with_cost(traces, "sofa")


@pytest.fixture(scope="module")
def data(house):
    machines = rs.infer(house, outputs=["observation", "reward", "cost"]).machines
    return contents(machines, collect_evidence(machines, house))


def test_each_machine_is_told_of(data, house):
    assert [
        (one["element"], one["name"], one["short"], one["outcome"], one["output"], one["count"])
        for one in data["machines"]
    ] == [
        ("transition", "Transition Machine", "TM", "next observation", "the next observation", 2),
        ("reward", "Reward Machine", "RM", "reward", "the reward", 2),
        ("machine-3", "Cost Machine", "cost", "cost", "the cost", 2),
    ]
    assert data["summary"]["figures"][:3] == [
        ["transition states", "2"],
        ["reward states", "2"],
        ["cost states", "2"],
    ]
    cost = data["machines"][2]
    assert cost["score"] == {
        "right": house.steps,
        "wrong": 0,
        "assumed_right": 0,
        "assumed_wrong": 0,
        "unseen": 0,
    }
    assert [state["history"] for state in cost["states"]] == ["start", "sofa"]
    assert cost["timeline"]["total"] == len(cost["timeline"]["rows"]) > 0
    assert (
        "Labels that change nothing in the Cost Machine: no event." in data["summary"]["sentences"]
    )


def test_the_player_walks_every_machine(data, house):
    texts = data["player"]["texts"]
    for one in data["player"]["traces"]:
        trace = house[one["number"]]
        for step, row in enumerate(one["steps"]):
            cost = 1 + has_read(trace, step, "sofa")
            happened, predicted, state, *outcome = row[5]
            assert (texts[happened], texts[predicted]) == (str(cost), str(cost))
            assert (state, outcome) == (cost - 1, [1, 0])


def test_one_machine_alone(house, tmp_path):
    machines = rs.infer(house, outputs=["cost"]).machines
    path = tmp_path / "cost.json"
    machines.save(path)
    rs.report(rs.load(path), house, tmp_path / "cost.html")
    (about,) = told_in(tmp_path / "cost.html")["machines"]
    assert (about["element"], about["name"], about["count"]) == ("machine-1", "Cost Machine", 2)


def test_generalized_outputs_are_counted_apart():
    machines = lamp_machines()
    assert [machine.states for machine in machines.values()] == [1, 2, 2]
    traces = rs.TraceSet([lit_wait(0), lit_wait(5)])
    data = contents(machines, collect_evidence(machines, traces))
    assert [one["score"] for one in data["machines"]] == [
        {"right": 4, "wrong": 0, "assumed_right": 0, "assumed_wrong": 0, "unseen": 0},
        {"right": 2, "wrong": 0, "assumed_right": 1, "assumed_wrong": 1, "unseen": 0},
        {"right": 2, "wrong": 0, "assumed_right": 2, "assumed_wrong": 0, "unseen": 0},
    ]
    text = data["summary"]["verdict"]["text"]
    assert text.startswith("1 wrong prediction. 4 outputs are generalized, 1 wrong. First: ")
    assert any(one.startswith("An output is generalized") for one in data["summary"]["sentences"])
    first = data["player"]["traces"][0]
    assert (first["number"], first["why"]) == (1, "has the first mismatch")
    # Of each machine: the state, whether it was right, and whether that was assumed.
    assert [[answer[2:] for answer in row[3:]] for row in first["steps"]] == [
        [[0, 1, 0], [0, 1, 0], [0, 1, 0]],
        [[0, 1, 0], [1, 0, 1], [1, 1, 1]],
    ]


def test_a_verdict_without_mistakes_says_what_is_assumed():
    data = score_summary(lamp_machines().score(rs.TraceSet([lit_wait(0)])))
    assert data == {
        "kind": "right",
        "text": "Every step of every trace is predicted, and right. "
        "2 outputs are generalized, none wrong.",
    }


@pytest.fixture
def replayed(monkeypatch):
    """The numbers of steps of all traces that machines walk, in order."""
    steps = []
    replay_shard, states_at_steps = replaying.replay_shard, replaying.states_at_steps

    def replayed_shard(tables, shard, **options):
        steps.append(shard.traces.steps)
        return replay_shard(tables, shard, **options)

    def walked(machines, traces):
        steps.append(traces.steps)
        return states_at_steps(machines, traces)

    for module in (replaying, collection):
        monkeypatch.setattr(module, "replay_shard", replayed_shard)
    for module in (collection, weakness, holdout, report_traces):
        monkeypatch.setattr(module, "states_at_steps", walked)
    return steps


def played(evidence):
    """The numbers of steps of the traces that a report shows one by one."""
    return [example.trace.steps for example in evidence.examples]


def test_a_report_replays_the_traces_once(house, replayed, tmp_path):
    result = rs.infer(house, outputs=["observation", "reward", "cost"])
    replayed.clear()
    rs.report(result, house, tmp_path / "report.html")
    # All others are of the hold-out: the machines inferred from four fifths, and the rest.
    assert replayed.count(house.steps) == 1
    assert all(steps < house.steps for steps in replayed[1:])


def test_new_traces_are_replayed_once_and_nothing_else(house, replayed, tmp_path):
    machines = rs.infer(house[:150], outputs=["observation", "reward", "cost"]).machines
    replayed.clear()
    rs.report(machines, house[150:], tmp_path / "report.html")
    assert replayed[0] == house[150:].steps
    assert replayed[1:] == played(collect_evidence(machines, house[150:]))


def test_given_evidence_only_what_is_shown_is_replayed(house, replayed, tmp_path):
    machines = rs.infer(house, outputs=["reward"]).machines
    evidence = collect_evidence(machines, house)
    replayed.clear()
    rs.report(machines, house, tmp_path / "report.html", evidence=evidence)
    assert replayed == played(evidence)
    assert len(replayed) <= 3


def test_evidence_of_something_else_is_refused(house, tmp_path):
    machines = rs.infer(house, outputs=["reward"]).machines
    evidence = collect_evidence(machines, house)
    with pytest.raises(ModelError, match=r"gathered from 200 traces of .* gather it anew"):
        rs.report(machines, house[:150], tmp_path / "report.html", evidence=evidence)
    others = rs.infer(house, outputs=["cost"]).machines
    with pytest.raises(ModelError, match="about other machines"):
        rs.report(others, house, tmp_path / "report.html", evidence=evidence)
    assert not list(tmp_path.iterdir())


def test_traces_without_the_column_are_refused(house, tmp_path):
    machines = rs.infer(house, outputs=["cost"]).machines
    plain = rs.collect(gym.make("resolvent/House-v0"), episodes=5, seed=0)
    with pytest.raises(ModelError, match="predicts cost, which these traces do not have"):
        rs.report(machines, plain, tmp_path / "report.html")


class Taken(HTMLParser):
    """The tags of a page, and the text of its data."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.data, self.inside = [], "", False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.inside = ("id", "data") in attributes

    def handle_data(self, data):
        if self.inside:
            self.data += data


def told_in(path):
    return json.loads(Taken(path.read_text(encoding="utf-8")).data.strip())


def test_a_column_may_be_called_anything(tmp_path):
    evil = '"><img src=x onerror=alert(1)>{{data}}</script>\u202e'

    def trace(label, value):
        return rs.Trace(["a"] * 3, [None, label, None], ["go"] * 2, columns={evil: [0, value]})

    traces = rs.TraceSet([trace("one", 1), trace("other", 2)])
    rs.infer(traces, outputs=[evil]).report(tmp_path / "evil.html")
    page = Taken((tmp_path / "evil.html").read_text(encoding="utf-8"))
    assert "img" not in page.tags
    assert page.tags.count("script") == 2
    (about,) = json.loads(page.data.strip())["machines"]
    assert about["short"] == evil.replace("\u202e", "\\u202e")
    assert about["element"] == "machine-1"
