"""Which strategies are tried for one machine, and which machine is taken."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import resolvent as rs
from mealy_machine import Mealy
from resolvent.inference import portfolio
from resolvent.inference.engine import Limits, merge
from resolvent.inference.portfolio import Candidate, Entrant, best_candidate, uncertainty
from resolvent.inference.summary import tried_lines
from resolvent.machines.build import RawMergeEvent, StateLimitExceeded, WorkLimitExceeded
from resolvent.preprocess.samples import Histories, output_samples
from resolvent.preprocess.timing import LabelTiming
from worlds import random_world

SCARCE = random_world(1, labels=6, tm_states=6).rollouts(110, seed=3)


def automaton(scores, states=3, finished=True, wrong=0):
    events = tuple(RawMergeEvent(0, 1, score, 1) for score in scores)
    return SimpleNamespace(events=events, states=states, finished=finished, wrong=wrong, work=7)


def candidate(name, bits, scores=(0,), **more):
    found = automaton(scores, **more)
    machine = SimpleNamespace(states=found.states)
    return Candidate(name, found, (), machine, bits)


def entered(name, found, turn=1, before=None):
    def find(task, best, limits):
        if before is not None:
            before(limits.listener)
        if isinstance(found, Exception):
            raise found
        return found

    return Entrant(name, turn, find)


CONTEXT = SimpleNamespace(in_time=lambda: True)
TREE = range(portfolio.WORTH_A_THREAD)  # large enough for threads
TASK = SimpleNamespace(
    limits=Limits,
    data=SimpleNamespace(context=CONTEXT),
    reduced=SimpleNamespace(histories=SimpleNamespace(tree=TREE)),
)


def choose(first, *entrants):
    best, attempts = best_candidate(TASK, first, 0.1, entrants)
    return best, [(attempt.name, attempt.outcome) for attempt in attempts]


# ---- uncertainty -----------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "much"),
    [
        ([], 0),  # nothing was merged
        ([3], 1),
        ([4], 0),
        ([4, 5], 1),  # two merges ask for five answers each
        ([5, 5], 0),
        ([40] * 31 + [8], 0.25),
    ],
)
def test_doubt_is_the_share_of_merges_with_little_for_them(scores, much):
    assert uncertainty(automaton(scores)) == much


def test_one_state_is_beyond_doubt_and_what_is_not_finished_is_not():
    assert uncertainty(automaton([0], states=1)) == 0
    assert uncertainty(automaton([90], finished=False)) == 1


# ---- who wins --------------------------------------------------------------


def test_the_shortest_description_wins():
    short = candidate("b", 9.0)
    best, tried = choose(
        candidate("a", 10.0), entered("b", short), entered("c", candidate("c", 9.5))
    )
    assert best is short
    assert tried == [("a", "longer"), ("b", "chosen"), ("c", "longer")]


def test_of_equals_the_first_wins():
    first = candidate("a", 10.0)
    best, tried = choose(first, entered("b", candidate("b", 10.0)))
    assert best is first
    assert tried == [("a", "chosen"), ("b", "longer")]


def test_what_explains_everything_beats_what_is_shorter_and_does_not():
    cut = candidate("a", 3.0, finished=False, wrong=5)
    whole = candidate("b", 30.0)
    best, tried = choose(cut, entered("b", whole))
    assert best is whole
    assert tried == [("a", "out of time"), ("b", "chosen")]


def test_beyond_doubt_nothing_else_is_tried():
    first = candidate("a", 10.0, scores=(99, 99))
    best, tried = choose(first, entered("b", AssertionError("it was tried")))
    assert best is first
    assert tried == [("a", "chosen")]


def test_a_later_turn_comes_only_if_there_is_doubt_left():
    sure = candidate("b", 9.0, scores=(99,))
    best, tried = choose(
        candidate("a", 10.0),
        entered("b", sure),
        entered("c", AssertionError("it was tried"), turn=2),
    )
    assert best is sure
    assert [name for name, _ in tried] == ["a", "b"]


def test_what_does_not_pay_is_not_tried():
    idle = replace(entered("b", AssertionError("it was tried")), applies=lambda task, best: False)
    assert choose(candidate("a", 1.0), idle)[1] == [("a", "chosen")]


@pytest.mark.parametrize("given_up", [StateLimitExceeded(), WorkLimitExceeded()])
def test_who_gives_up_is_named(given_up):
    assert choose(candidate("a", 1.0), entered("b", given_up))[1] == [
        ("a", "chosen"),
        ("b", "given up"),
    ]


@pytest.mark.parametrize("late", [0, 1])
def test_who_is_done_first_makes_no_difference(late):
    """Both entrants run at once, and one of them ends only after the other has."""
    ended = threading.Event()
    ways = [
        (lambda listener: ended.wait(10)) if place == late else (lambda listener: None)
        for place in range(2)
    ]
    names = ["b", "c"]
    entrants = []
    for place, (name, way) in enumerate(zip(names, ways, strict=True)):

        def find(task, best, limits, name=name, way=way, place=place):
            way(limits.listener)
            if place != late:
                ended.set()
            return candidate(name, 5.0)

        entrants.append(Entrant(name, 1, find))
    _, tried = choose(candidate("a", 10.0), *entrants)
    assert tried == [("a", "longer"), ("b", "chosen"), ("c", "longer")]


def test_what_one_raises_stops_the_others_and_comes_through():
    class Enough(Exception):  # noqa: N818
        pass

    def listen_on(listener):
        for _ in range(100_000):
            listener(None)
            threading.Event().wait(0.001)
        raise AssertionError("nobody stopped it")

    with pytest.raises(Enough):
        choose(
            candidate("a", 10.0),
            entered("b", Enough()),
            entered("c", candidate("c", 1.0), before=listen_on),
        )


# ---- in an inference -------------------------------------------------------


def test_all_that_was_tried_is_told():
    result = rs.infer(SCARCE, outputs=["observation"])
    tried = {one.name: one for one in result.tried["transition"]}
    assert set(tried) >= {"edsm", "rpni", "search"}
    assert [name for name, one in tried.items() if one.outcome == "chosen"] == ["search"]
    assert tried["search"].states == result.transition.states == 6
    assert tried["edsm"].states > 12
    (line,) = tried_lines(result)
    assert line.startswith("transition machine: search: 6 states, ")
    assert "the shortest description; edsm: " in line
    assert result.as_dict()["tried"]["transition"][0]["name"] == "edsm"
    assert "tried               transition machine: search" in str(result)


def test_of_machines_that_are_not_finished_the_shortest_need_not_win():
    result = rs.infer(SCARCE, outputs=["observation"])
    fit = result.inference_state.fit
    unfinished = replace(fit, by_name={"transition": replace(fit["transition"], finished=False)})
    state = replace(result.inference_state, fit=unfinished)
    (line,) = tried_lines(replace(result, inference_state=state))
    assert "bits, fewest wrong; edsm: " in line


def test_a_strategy_of_its_own_is_told_alone():
    (one,) = rs.infer(SCARCE, outputs=["observation"], strategy="rpni").tried["transition"]
    assert (one.name, one.outcome) == ("rpni", "chosen")


def test_effort_scales_what_is_tried():
    little = rs.infer(SCARCE, outputs=["observation"], options=rs.InferenceOptions(effort=1e-6))
    assert little.transition.states > 6


@pytest.mark.parametrize(("inputs", "steps"), [(4, 300), (40, 2_000)])
def test_the_search_is_left_out_where_states_are_asked_only_where_they_lead(
    monkeypatch, inputs, steps
):
    def never(*arguments, **options):
        raise AssertionError("it was tried")

    monkeypatch.setattr(portfolio, "search", never)
    traces = Mealy.drawn(8, 0, inputs=inputs).traces(steps, 0)
    result = rs.infer(traces, outputs=["output"], noise="none")
    assert [one.name for one in result.tried["output"]][:2] == ["edsm", "rpni"]


def test_merging_that_leads_nowhere_is_put_off(monkeypatch):
    """One long log: no two histories are alike, and the search finds what merging does not."""
    monkeypatch.setattr("resolvent.inference.task.WORK_BEFORE_SEARCH", 1)
    monkeypatch.setattr("resolvent.inference.task.WORK_FOR_NODE", 10)
    machine = Mealy.drawn(5, 0, inputs=3)
    log = machine.traces(3_000, 0, lengths=(3_000, 3_000))
    result = rs.infer(
        log, outputs=["output"], noise="none", options=rs.InferenceOptions(trivial=["no event"])
    )
    assert [one.name for one in result.tried["output"]] == ["search"]
    assert machine.is_found(result.machines["output"])


def samples_of(traces, predicts):
    return output_samples(traces, Histories.of(traces, LabelTiming.CURRENT), predicts)


def test_work_is_the_same_every_time_and_can_be_limited():
    samples = samples_of(Mealy.drawn(20, 0).traces(20_000, 0), "output")
    found, again = merge(samples), merge(samples)
    assert found.work == again.work > 50_000
    with pytest.raises(WorkLimitExceeded):
        merge(samples, limits=Limits(most_work=found.work // 2))
    assert merge(samples, limits=Limits(most_work=2 * found.work)).events == found.events


def test_a_short_log_that_merging_learns_by_heart_is_searched():
    machine = Mealy.drawn(8, 1, inputs=4)
    random = np.random.default_rng(0)
    given = random.integers(0, 4, 2_000)
    state, told = 0, []
    for one in given:
        told.append(machine.answers[machine.outputs[state, one]])
        state = machine.moves[state, one]
    inputs = [machine.inputs[one] for one in given]
    labels = [[], *([one] for one in inputs)]
    log = rs.Trace(["system"] * 2_001, labels, inputs, columns={"output": told})
    result = rs.infer(rs.TraceSet([log]), outputs=["output"])
    tried = {one.name: one for one in result.tried["output"]}
    assert tried["edsm"].states > 100
    assert tried["search"].outcome == "chosen"
    assert result.machines["output"].states == 8
