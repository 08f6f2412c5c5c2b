"""Which strategies run for one machine, and which machine is chosen."""

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
from resolvent.inference.strategy import ENGINES
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
    output_bits=1.0,
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
def test_uncertainty_is_the_share_of_merges_with_little_evidence(scores, much):
    assert uncertainty(automaton(scores)) == much


def test_one_state_is_certain_and_an_unfinished_machine_is_not():
    assert uncertainty(automaton([0], states=1)) == 0
    assert uncertainty(automaton([90], finished=False)) == 1


# ---- who wins --------------------------------------------------------------


def test_the_shortest_description_wins():
    short = candidate("b", 9.0)
    best, attempts = choose(
        candidate("a", 10.0), entered("b", short), entered("c", candidate("c", 9.5))
    )
    assert best is short
    assert attempts == [("a", "longer"), ("b", "chosen"), ("c", "longer")]


def test_of_equals_the_first_wins():
    first = candidate("a", 10.0)
    best, attempts = choose(first, entered("b", candidate("b", 10.0)))
    assert best is first
    assert attempts == [("a", "chosen"), ("b", "longer")]


def test_a_machine_that_explains_all_beats_a_shorter_one_that_does_not():
    cut = candidate("a", 3.0, finished=False, wrong=5)
    whole = candidate("b", 30.0)
    best, attempts = choose(cut, entered("b", whole))
    assert best is whole
    assert attempts == [("a", "out of time"), ("b", "chosen")]


def test_without_uncertainty_no_entrant_runs():
    first = candidate("a", 10.0, scores=(99, 99))
    best, attempts = choose(first, entered("b", AssertionError("it was run")))
    assert best is first
    assert attempts == [("a", "chosen")]


def test_a_later_turn_runs_only_if_uncertainty_is_left():
    sure = candidate("b", 9.0, scores=(99,))
    best, attempts = choose(
        candidate("a", 10.0),
        entered("b", sure),
        entered("c", AssertionError("it was run"), turn=2),
    )
    assert best is sure
    assert [name for name, _ in attempts] == ["a", "b"]


def test_entrants_that_do_not_apply_are_not_run():
    idle = replace(entered("b", AssertionError("it was run")), applies=lambda task, best: False)
    assert choose(candidate("a", 1.0), idle)[1] == [("a", "chosen")]


@pytest.mark.parametrize("given_up", [StateLimitExceeded(), WorkLimitExceeded()])
def test_entrants_that_give_up_are_recorded(given_up):
    assert choose(candidate("a", 1.0), entered("b", given_up))[1] == [
        ("a", "chosen"),
        ("b", "given up"),
    ]


@pytest.mark.parametrize("late", [0, 1])
def test_the_order_in_which_entrants_finish_makes_no_difference(late):
    """Both entrants run at once, and the late one ends only after the other."""
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
    _, attempts = choose(candidate("a", 10.0), *entrants)
    assert attempts == [("a", "longer"), ("b", "chosen"), ("c", "longer")]


def test_an_error_of_an_entrant_stops_the_others_and_is_raised():
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


def test_all_attempts_are_recorded():
    result = rs.infer(SCARCE, outputs=["observation"])
    attempts = {attempt.name: attempt for attempt in result.tried["transition"]}
    assert set(attempts) >= {"edsm", "rpni", "search"}
    chosen = [name for name, attempt in attempts.items() if attempt.outcome == "chosen"]
    assert chosen in (["search"], ["loops"])
    assert attempts["search"].states == result.transition.states == 6
    assert attempts["edsm"].states > 12
    (line,) = tried_lines(result)
    assert line.startswith(f"transition machine: {chosen[0]}: 6 states, ")
    assert "the shortest description; edsm: " in line
    assert result.as_dict()["tried"]["transition"][0]["name"] == "edsm"
    assert f"tried               transition machine: {chosen[0]}" in str(result)


def test_of_unfinished_machines_the_fewest_wrong_outputs_win():
    result = rs.infer(SCARCE, outputs=["observation"])
    fit = result.inference_state.fit
    unfinished = replace(fit, by_name={"transition": replace(fit["transition"], finished=False)})
    state = replace(result.inference_state, fit=unfinished)
    (line,) = tried_lines(replace(result, inference_state=state))
    assert "bits, fewest wrong; edsm: " in line


def test_the_portfolio_is_the_same_on_the_python_engine():
    """Orders that Python does not have run natively there."""
    native, python = (
        rs.infer(SCARCE[:15], options=rs.InferenceOptions(engine=engine)) for engine in ENGINES
    )
    assert {"likelihood", "backtracking"} <= {each.name for each in native.tried["transition"]}
    assert python.tried == native.tried
    assert python.machines == native.machines


def test_a_single_strategy_is_the_only_attempt():
    (attempt,) = rs.infer(SCARCE, outputs=["observation"], strategy="rpni").tried["transition"]
    assert (attempt.name, attempt.outcome) == ("rpni", "chosen")


def test_effort_scales_the_search():
    little = rs.infer(SCARCE, outputs=["observation"], options=rs.InferenceOptions(effort=1e-6))
    assert little.transition.states > 6


@pytest.mark.parametrize(("inputs", "steps"), [(4, 300), (40, 2_000)])
def test_the_search_is_left_out_if_queries_are_the_transitions(monkeypatch, inputs, steps):
    def never(*arguments, **options):
        raise AssertionError("it was run")

    monkeypatch.setattr(portfolio, "search", never)
    traces = Mealy.drawn(8, 0, inputs=inputs).traces(steps, 0)
    result = rs.infer(traces, outputs=["output"], noise="none")
    assert [attempt.name for attempt in result.tried["output"]][:2] == ["edsm", "rpni"]


def test_merging_that_takes_long_is_deferred(monkeypatch):
    """One long log: no two histories are alike, and the search finds what merging does not."""
    monkeypatch.setattr("resolvent.inference.task.WORK_BEFORE_SEARCH", 1)
    monkeypatch.setattr("resolvent.inference.task.WORK_FOR_NODE", 10)
    machine = Mealy.drawn(5, 0, inputs=3)
    log = machine.traces(3_000, 0, lengths=(3_000, 3_000))
    result = rs.infer(
        log, outputs=["output"], noise="none", options=rs.InferenceOptions(trivial=["no event"])
    )
    assert [attempt.name for attempt in result.tried["output"]] == ["search"]
    assert machine.is_found(result.machines["output"])


def samples_of(traces, predicts):
    return output_samples(traces, Histories.of(traces, LabelTiming.CURRENT), predicts)


def test_work_is_reproducible_and_can_be_limited():
    samples = samples_of(Mealy.drawn(20, 0).traces(20_000, 0), "output")
    found, again = merge(samples), merge(samples)
    assert found.work == again.work > 50_000
    with pytest.raises(WorkLimitExceeded):
        merge(samples, limits=Limits(most_work=found.work // 2))
    assert merge(samples, limits=Limits(most_work=2 * found.work)).events == found.events


def test_a_short_log_that_merging_memorizes_is_searched():
    machine = Mealy.drawn(8, 1, inputs=4)
    random = np.random.default_rng(0)
    codes = random.integers(0, 4, 2_000)
    state, outputs = 0, []
    for code in codes:
        outputs.append(machine.answers[machine.outputs[state, code]])
        state = machine.moves[state, code]
    inputs = [machine.inputs[code] for code in codes]
    labels = [[], *([name] for name in inputs)]
    log = rs.Trace(["system"] * 2_001, labels, inputs, columns={"output": outputs})
    result = rs.infer(rs.TraceSet([log]), outputs=["output"])
    attempts = {attempt.name: attempt for attempt in result.tried["output"]}
    assert attempts["edsm"].states > 100
    assert attempts["search"].outcome == "chosen"
    assert result.machines["output"].states == 8
