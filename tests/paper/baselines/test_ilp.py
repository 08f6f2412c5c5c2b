import importlib
import os
import signal
import time
from itertools import product

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resolvent as rs
from edge_machines import first_difference
from resolvent.errors import MissingExtra, OptionError, TimeLimitReached, TraceError
from resolvent.machines import EdgeRewardMachine
from resolvent.paper.baselines import ilp
from resolvent.paper.baselines import outcome as outcome_module
from resolvent.paper.baselines.ilp import Program, Steps
from resolvent.paper.baselines.outcome import Clock, wrong_rewards
from resolvent.traces import Trace, TraceSet
from resolvent.worlds import PhaseGrid

MODES = ["all", "conflicts"]


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


def smallest(traces, most_states):
    """The fewest states, and with those the fewest changes of state, over all machines."""
    labels = sorted({label for trace in traces for label in trace.labels[1:]}, key=sorted)
    for states in range(1, most_states + 1):
        pairs = list(product(range(states), labels))
        costs = []
        for targets in product(range(states), repeat=len(pairs)):
            step = dict(zip(pairs, targets, strict=True))
            if explains(step, traces):
                costs.append(sum(target != state for (state, _), target in step.items()))
        if costs:
            return states, min(costs)
    return None


def found(outcome):
    if outcome.machine is None:
        return None
    tried = outcome.details["tried"]  # empty if one state is enough
    return outcome.states, tried[-1]["cost"] if tried else 0


@pytest.mark.parametrize("mode", MODES)
@given(traces=tiny_traces())
@settings(max_examples=20, deadline=None)
def test_no_machine_is_smaller_or_changes_state_less_often(mode, traces):
    outcome = ilp(traces, mode=mode, most_states=3)
    assert found(outcome) == smallest(traces, 3)
    assert outcome.status == ("no solution" if outcome.machine is None else "found")
    if outcome.machine is not None:
        assert all(program["bound"] == program["cost"] for program in outcome.details["tried"][-1:])
        assert wrong_rewards(outcome.machine, traces) == 0


@pytest.mark.parametrize("mode", MODES)
def test_the_task_of_the_small_grid_is_found(mode):
    traces = grid(3, 275)
    outcome = ilp(traces, mode=mode)
    assert outcome.status == "found"
    assert found(outcome) == (2, 1)
    assert first_difference(outcome.machine, truth(3, traces), traces.labels) is None
    assert wrong_rewards(outcome.machine, traces) == 0


def test_few_conflicts_give_the_task_of_the_middle_grid():
    traces = grid(4, 500)
    outcome = ilp(traces, mode="conflicts")
    assert outcome.states == 3
    assert first_difference(outcome.machine, truth(4, traces), traces.labels) is None
    last = outcome.details["tried"][-1]
    assert last["traces"] < 50
    assert last["steps"] < traces.steps / 100


@pytest.mark.parametrize("episodes", [10, 40])
def test_both_modes_find_the_same_size(episodes):
    traces = grid(3, episodes)
    sizes = {found(ilp(traces, mode=mode)) for mode in ("all", "conflicts")}
    assert len(sizes) == 1
    assert sizes != {None}


def test_an_edge_that_always_ends_the_episode_leads_to_the_end():
    traces = TraceSet([trace_of("ab", [0, 1], terminated=True), trace_of("b", [1])])
    assert ilp(traces).machine.step(0, {"b"}) == (0, 1.0)  # once it went on
    ended = TraceSet([trace_of("ab", [0, 1], terminated=True)])
    machine = ilp(ended).machine
    assert machine.terminal == {1}
    assert machine.step(0, {"b"}) == (1, 1.0)


def test_equal_label_sequences_with_different_rewards_have_no_machine():
    traces = TraceSet([trace_of("ab", [0, 1]), trace_of("ab", [0, 0])])
    outcome = ilp(traces)
    assert (outcome.status, outcome.machine, outcome.states) == ("no solution", None, None)
    assert outcome.details["tried"] == []


@pytest.mark.parametrize("mode", ["all", "conflicts"])
def test_too_few_states_have_no_solution(mode):
    traces = TraceSet([trace_of("aaa", [0, 0, 1])])
    outcome = ilp(traces, mode=mode, most_states=2)
    assert (outcome.status, outcome.machine) == ("no solution", None)
    assert outcome.details["tried"][-1]["status"] == "infeasible"
    assert ilp(traces, mode=mode, most_states=3).states == 3


@pytest.mark.parametrize("mode", MODES)
def test_without_time_nothing_is_found(mode):
    outcome = ilp(grid(3, 20), mode=mode, time_limit=1e-9)
    assert (outcome.status, outcome.machine) == ("time limit", None)


def test_a_limit_inside_the_solver_reports_the_program(monkeypatch):
    """The clock stands still while programs are built, so the solver reaches the limit."""
    build, solving = Program.of, {"began": time.monotonic(), "before": 0.0, "building": False}

    def now():
        return solving["before"] + (
            0.0 if solving["building"] else time.monotonic() - solving["began"]
        )

    def build_untimed(*arguments):
        solving.update(before=now(), building=True)
        program = build(*arguments)
        solving.update(began=time.monotonic(), building=False)
        return program

    monkeypatch.setattr(Program, "of", build_untimed)
    monkeypatch.setattr(outcome_module, "now", now)
    traces = grid(4, 500)
    outcome = ilp(traces, time_limit=0.5)
    assert (outcome.status, outcome.machine) == ("time limit", None)
    last = outcome.details["tried"][-1]
    assert (last["status"], last["traces"]) == ("time limit", 500)
    assert last["variables"] >= traces.steps * last["states"] ** 2


def test_a_limit_while_a_program_is_built_reports_the_one_before(monkeypatch):
    build = Program.of

    def build_one(steps, states, clock):
        if states == 2:
            raise TimeLimitReached
        return build(steps, states, clock)

    monkeypatch.setattr(Program, "of", build_one)
    traces = TraceSet([trace_of("aa", [0, 1])])
    outcome = ilp(traces)
    assert outcome.status == "time limit"
    [tried] = outcome.details["tried"]
    assert (tried["states"], tried["status"]) == (1, "infeasible")


@pytest.mark.skipif(os.name == "nt", reason="SIGALRM does not exist there")
def test_ctrl_c_interrupts_the_solver():
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    try:
        with pytest.raises(KeyboardInterrupt):
            ilp(grid(4, 200), time_limit=600)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_program_beyond_what_solvers_can_number_is_refused():
    steps = Steps(*[np.zeros(50_000_000, np.int8)] * 2, np.array([0, 50_000_000]), 1)
    with pytest.raises(OptionError, match="50,000,000 steps and 3 states"):
        Program.of(steps, 3, Clock(None))


def test_options_that_make_no_sense_are_refused():
    traces = grid(3, 5)
    for wrong in (
        {"mode": "some"},
        {"most_states": 0},
        {"time_limit": 0},
    ):
        with pytest.raises(OptionError, match=str(next(iter(wrong.values())))):
            ilp(traces, **wrong)
    with pytest.raises(TraceError, match="no traces"):
        ilp(TraceSet([]))


def test_a_missing_solver_names_the_extra(monkeypatch):
    def missing(name):
        raise ImportError(name)

    traces = grid(3, 5)
    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtra, match=r"resolvent\[baselines\]"):
        ilp(traces)


def test_the_program_has_the_rows_of_its_constraints():
    # Two traces: label 0 has reward 0, label 1 has 0 and 1.
    steps = Steps(np.int32([0, 1, 1]), np.int32([0, 0, 1]), np.array([0, 2, 3]), 2)
    program = Program.of(steps, 2, Clock(None))
    assert len(program.cost) == 4 * (3 + 2 + 2)  # steps, labels, rewards of label 1
    one_edge, flow, one_target, one_reward, links = 3, 2, 4, 4, 12
    assert len(program.row_lower) == one_edge + flow + one_target + one_reward + links
    assert program.cost.sum() == 4  # two labels, two changes of state
    assert np.flatnonzero(program.upper == 0).tolist() == [2, 3, 10, 11]  # first steps leave 0
