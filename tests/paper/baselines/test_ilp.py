import importlib
import signal
import time
from itertools import product

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resolvent as rs
from resolvent.errors import MissingExtra, OptionError, TimeLimitReached, TraceError
from resolvent.machines import EdgeRewardMachine
from resolvent.paper.baselines import KeyedRewardMachine, clock, ilp
from resolvent.paper.baselines.ilp import Steps, build_program
from resolvent.paper.baselines.outcome import wrong_rewards
from resolvent.traces import Trace, TraceSet
from resolvent.worlds import PhaseGrid

WAYS = [(mode, solver) for mode in ("all", "conflicts") for solver in ("highs", "cp-sat")]


def grid(size, episodes):
    return rs.collect(gym.make(f"resolvent/PhaseGrid{size}-v0"), episodes=episodes, seed=0)


def truth(size, traces):
    return EdgeRewardMachine.from_pair(PhaseGrid(size).machines(), traces)


def trace_of(word, rewards, **ends):
    """A trace that reads these labels, after a first one that does not count."""
    return Trace(["o"] * (len(word) + 1), ["z", *word], ["a"] * len(word), rewards, **ends)


@st.composite
def tiny_traces(draw):
    return TraceSet(
        trace_of(
            draw(st.lists(st.sampled_from("ab"), min_size=steps, max_size=steps)),
            draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=steps, max_size=steps)),
        )
        for steps in draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    )


def explains(step, traces):
    paid = {}
    for trace in traces:
        state = 0
        for label, reward in zip(trace.labels[1:], trace.rewards, strict=True):
            if paid.setdefault((state, label), reward) != reward:
                return False
            state = step[state, label]
    return True


def smallest(traces, most_states, monotone=False):
    """The fewest states, and with those the fewest changes of state, over all machines."""
    labels = sorted({label for trace in traces for label in trace.labels[1:]}, key=sorted)
    for states in range(1, most_states + 1):
        places = list(product(range(states), labels))
        costs = []
        for targets in product(range(states), repeat=len(places)):
            step = dict(zip(places, targets, strict=True))
            backward = any(target < state for (state, _), target in step.items())
            if not (monotone and backward) and explains(step, traces):
                costs.append(sum(target != state for (state, _), target in step.items()))
        if costs:
            return states, min(costs)
    return None


def found(outcome):
    return (outcome.details["states"], outcome.details["cost"]) if outcome.machine else None


@pytest.mark.parametrize(("mode", "solver"), WAYS)
@given(traces=tiny_traces(), monotone=st.booleans())
@settings(max_examples=20, deadline=None)
def test_no_machine_at_all_is_smaller_or_changes_state_less(mode, solver, traces, monotone):
    outcome = ilp(traces, mode=mode, solver=solver, most_states=3, monotone=monotone)
    assert found(outcome) == smallest(traces, 3, monotone)
    assert outcome.status == ("no solution" if outcome.machine is None else "found")
    if outcome.machine is not None:
        assert outcome.states == outcome.details["states"]
        assert outcome.details["bound"] == outcome.details["cost"]
        assert wrong_rewards(outcome.machine, traces) == 0


def test_a_monotone_machine_never_comes_back():
    toggling = TraceSet([trace_of("aaaa", [0, 1, 0, 1]), trace_of("aaa", [0, 1, 0])])
    assert ilp(toggling).states == 2
    climbing = ilp(toggling, monotone=True).machine
    seen, state = [], climbing.initial
    for _ in range(4):
        seen.append(state)
        state, _ = climbing.step(state, {"a"})
    assert seen == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("mode", "solver"),
    [pytest.param(*way, marks=[pytest.mark.slow] * (way == ("all", "cp-sat"))) for way in WAYS],
)
def test_the_task_of_the_small_grid_is_found(mode, solver):
    traces = grid(3, 275)
    outcome = ilp(traces, mode=mode, solver=solver)
    assert outcome.status == "found"
    assert (outcome.states, outcome.details["cost"]) == (2, 1)
    assert outcome.machine.first_difference(truth(3, traces), traces.labels) is None
    assert wrong_rewards(outcome.machine, traces) == 0


@pytest.mark.parametrize("solver", ["highs", "cp-sat"])
def test_few_conflicts_give_the_task_of_the_middle_grid(solver):
    traces = grid(4, 500)
    outcome = ilp(traces, mode="conflicts", solver=solver)
    assert outcome.states == 3
    assert outcome.machine.first_difference(truth(4, traces), traces.labels) is None
    assert outcome.details["traces"] < 50
    assert outcome.details["steps"] < traces.steps / 100


@pytest.mark.parametrize("key", ["label", "state", "triple"])
@pytest.mark.parametrize("episodes", [10, 40])
def test_both_modes_find_the_same_size(key, episodes):
    traces = grid(3, episodes)
    sizes = {found(ilp(traces, mode=mode, key=key)) for mode in ("all", "conflicts")}
    assert len(sizes) == 1
    assert sizes != {None}


@pytest.mark.slow
@pytest.mark.parametrize("episodes", [5, 15])
def test_both_modes_find_the_same_size_on_the_middle_grid(episodes):
    traces = grid(4, episodes)
    sizes = {found(ilp(traces, mode=mode, solver="cp-sat")) for mode in ("all", "conflicts")}
    assert len(sizes) == 1
    assert sizes != {None}


@pytest.mark.parametrize("key", ["state", "triple"])
def test_keys_that_are_no_labels_give_a_machine_over_them(key):
    traces = grid(3, 40)
    outcome = ilp(traces, key=key)
    assert isinstance(outcome.machine, KeyedRewardMachine)
    assert outcome.states == outcome.machine.states == 2
    assert outcome.machine.wrong_rewards(traces) == 0
    coffee = (2, 0) if key == "state" else ((1, 0), "down", (2, 0))
    assert outcome.machine.step(0, coffee) == (1, 0.0)
    assert outcome.machine.step(0, "elsewhere") is None


def test_wrong_rewards_of_a_machine_over_observations_are_counted():
    machine = KeyedRewardMachine("state", 1, {(0, "o"): (0, 1.0)})
    traces = TraceSet([Trace("oopo", "zzzz", "aaa", [1, 1, 1]), Trace("oo", "zz", "a", [0])])
    assert machine.wrong_rewards(traces) == 3  # at p, after p, and where 0 was paid


def test_an_edge_that_always_ends_the_episode_leads_to_the_end():
    traces = TraceSet([trace_of("ab", [0, 1], terminated=True), trace_of("b", [1])])
    assert ilp(traces).machine.step(0, {"b"}) == (0, 1.0)  # once it went on
    ended = TraceSet([trace_of("ab", [0, 1], terminated=True)])
    machine = ilp(ended).machine
    assert machine.terminal == {1}
    assert machine.step(0, {"b"}) == (1, 1.0)


def test_the_same_keys_with_different_rewards_have_no_machine():
    traces = TraceSet([trace_of("ab", [0, 1]), trace_of("ab", [0, 0])])
    outcome = ilp(traces)
    assert (outcome.status, outcome.machine, outcome.states) == ("no solution", None, None)
    assert outcome.details["contradiction"]
    assert outcome.details["tried"] == []


@pytest.mark.parametrize("mode", ["all", "conflicts"])
def test_too_few_states_have_no_solution(mode):
    traces = TraceSet([trace_of("aaa", [0, 0, 1])])
    outcome = ilp(traces, mode=mode, most_states=2)
    assert (outcome.status, outcome.machine) == ("no solution", None)
    assert [one["verdict"] for one in outcome.details["tried"]][-1] == "infeasible"
    assert ilp(traces, mode=mode, most_states=3).states == 3


@pytest.mark.parametrize(("mode", "solver"), WAYS)
def test_without_time_nothing_is_found(mode, solver):
    outcome = ilp(grid(3, 20), mode=mode, solver=solver, time_limit=1e-9)
    assert (outcome.status, outcome.machine) == ("time limit", None)


@pytest.mark.parametrize("solver", ["highs", "cp-sat"])
def test_a_limit_inside_the_solver_says_what_is_known(solver, monkeypatch):
    begun = []

    def write(*given, **options):
        program = build_program(*given, **options)
        begun.append(time.monotonic())
        return program

    # Time begins when there is a program, however long a machine takes to write it.
    monkeypatch.setattr(
        importlib.import_module("resolvent.paper.baselines.ilp"), "build_program", write
    )
    monkeypatch.setattr(clock, "now", lambda: time.monotonic() - begun[0] if begun else 0.0)
    traces = grid(4, 500)
    outcome = ilp(traces, solver=solver, time_limit=1.5)
    assert (outcome.status, outcome.machine) == ("time limit", None)
    states = outcome.details["states"]
    assert states in (1, 2, 3)
    assert outcome.details["variables"] >= traces.steps * states**2
    assert outcome.details["traces"] == 500


def test_a_limit_while_a_program_is_written_tells_of_the_one_before(monkeypatch):
    def write(steps, states, **options):
        if states == 2:
            raise TimeLimitReached
        return build_program(steps, states, **options)

    monkeypatch.setattr(
        importlib.import_module("resolvent.paper.baselines.ilp"), "build_program", write
    )
    traces = TraceSet([trace_of("aa", [0, 1])])
    outcome = ilp(traces)
    assert outcome.status == "time limit"
    [tried] = outcome.details["tried"]
    assert (tried["states"], tried["verdict"]) == (1, "infeasible")
    for name in ("states", "steps", "variables", "constraints"):
        assert outcome.details[name] == tried[name]


def test_progress_is_told_and_may_stop_everything():
    told = []

    def stop(text, fraction):
        told.append((text, fraction))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ilp(grid(4, 500), time_limit=600, progress=stop)
    assert len(told) == 1
    assert "variables" in told[0][0]
    assert 0 <= told[0][1] <= 1


@pytest.mark.parametrize("solver", ["highs", "cp-sat"])
def test_the_interrupt_key_reaches_python_while_a_solver_runs(solver):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            ilp(
                grid(4, 200),
                solver=solver,
                time_limit=600,
                progress=lambda *news: signal.raise_signal(signal.SIGINT),
            )
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_program_beyond_what_solvers_can_number_is_refused():
    steps = Steps(*[np.zeros(50_000_000, np.int8)] * 2, np.array([0, 50_000_000]), 1)
    with pytest.raises(OptionError, match="50,000,000 steps and 3 states"):
        build_program(steps, 3)


def test_options_that_make_no_sense_are_refused():
    traces = grid(3, 5)
    for wrong in (
        {"mode": "some"},
        {"key": "action"},
        {"solver": "abacus"},
        {"most_states": 0},
        {"time_limit": 0},
    ):
        with pytest.raises(OptionError, match=str(next(iter(wrong.values())))):
            ilp(traces, **wrong)
    with pytest.raises(TraceError, match="no traces"):
        ilp(TraceSet([]))


@pytest.mark.parametrize("solver", ["highs", "cp-sat"])
def test_a_missing_solver_names_the_extra(solver, monkeypatch):
    def missing(name):
        raise ImportError(name)

    traces = grid(3, 5)
    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtra, match=r"resolvent\[baselines\]"):
        ilp(traces, solver=solver)


def test_the_program_has_a_row_for_each_thing_it_says():
    # Two traces: key 0 pays 0, key 1 pays 0 and 1.
    steps = Steps(np.int32([0, 1, 1]), np.int32([0, 0, 1]), np.array([0, 2, 3]), 2)
    program = build_program(steps, 2)
    assert program.variables == 4 * (3 + 2 + 2)  # steps, keys, rewards of key 1
    one_move, flow, one_target, one_reward, links = 3, 2, 4, 4, 12
    assert program.constraints == one_move + flow + one_target + one_reward + links
    assert program.cost.sum() == 4  # two keys, two ways to change state
    assert np.flatnonzero(program.upper == 0).tolist() == [2, 3, 10, 11]  # first steps leave 0
    going_back = build_program(steps, 2, monotone=True).upper.reshape(-1, 2, 2)[:, 1, 0]
    assert not going_back.any()
