"""The last tests before exploration stops: alternative machines, and more states than found."""

from dataclasses import replace
from itertools import product

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from resolvent.exploration import alternatives
from resolvent.exploration.alternatives import AlternativeHypotheses, distinguishing_path
from resolvent.exploration.hypothesis import explains
from resolvent.exploration.tables import ObservedMachines, QueriedSteps
from resolvent.worlds import House
from worlds_to_explore import Bells, SecondMission, TwoDoors

BELL = frozenset({"bell"})


@pytest.mark.parametrize("rings", [3, 7])
@pytest.mark.parametrize("more", [1, 2])
def test_hidden_states_are_found_up_to_the_maximum(rings, more):
    solved = rs.solve(Bells(rings), states=rings + more)
    assert solved.optimal
    assert solved.states == {"transition": 1, "reward": rings + 1}
    assert solved.value == pytest.approx(5 * 0.95 ** (rings + 1))
    assert solved.guarantee.tests > 0
    assert f"has at most {rings + more} states in each machine" in solved.why_stopped


def test_without_a_maximum_the_statement_is_about_the_states_found():
    solved = rs.solve(Bells(20))
    assert solved.states["reward"] == 1  # nobody rings twenty times for nothing
    assert "has the machine states found (1 transition, 1 reward)" in solved.why_stopped
    assert solved.guarantee.tests is None


def test_every_query_is_asked_after_every_word():
    """Two rings matter, so three states are found; with a fourth, three rings in a row count."""
    solved = rs.solve(Bells(2), states=4)
    asked = set()
    for trace in solved.traces:
        rung = 0
        for step, action in enumerate(trace.actions):
            rung += trace.labels[step] == BELL
            asked.add((rung, trace.observations[step], action))
    wanted = set(product(range(4), Bells.rooms, Bells.action_names))
    assert wanted <= asked


@pytest.mark.parametrize("limit", ["MAX_TESTS", "MAX_NODES"])
def test_too_many_label_sequences_are_sampled(monkeypatch, limit):
    monkeypatch.setattr(alternatives, limit, 5)
    solved = rs.solve("resolvent/House-v0", states=3)
    assert solved.optimal
    assert solved.guarantee.tests is None
    assert "label sequences for up to 3 states were only sampled" in solved.why_stopped
    assert "has the machine states found" in solved.why_stopped


def test_machines_above_the_maximum_are_sampled():
    solved = rs.solve(SecondMission(), states=2)
    assert solved.states["reward"] > 2
    assert "only sampled" in solved.why_stopped


def explored(env, steps):
    """What an explorer knows after so many steps, and the episodes under way."""
    explorer = rs.Explorer(env, seed=1)
    observation, info = env.reset(seed=0)
    while explorer.steps < steps:
        action = explorer.act(observation, info)
        if action is None:
            observation, info = env.reset()
            continue
        observation, reward, terminated, truncated, info = env.step(action)
        explorer.learn(action, observation, reward, terminated, truncated, info)
        if terminated or truncated:
            observation, info = env.reset()
    state = explorer.state
    state.rebuild()
    return state


@pytest.mark.parametrize(("world", "steps"), [(House, 40), (SecondMission, 80)])
def test_a_distinguishing_path_ends_where_predictions_differ(world, steps):
    state = explored(world(), steps)
    model, columns = state.model, state.buffer.columns()
    found = 0
    for tables in AlternativeHypotheses(state.hypothesis, model).candidates():
        assert explains(tables, QueriedSteps(columns, tables))
        rival = ObservedMachines.of_steps(tables, QueriedSteps(columns, tables))
        theirs = [0] * len(tables.transitions)
        for start in model.starts:
            way = distinguishing_path(model, start, tuple(theirs), rival)
            if way is None:
                continue
            found += 1
            for row, action in way.steps[:-1]:
                label = model.label_read[row][action]
                theirs = [
                    int(one[now, label])
                    for one, now in zip(tables.transitions, theirs, strict=True)
                ]
            row, action = way.steps[-1]
            observation, *own = model.augmented_states[row]
            both = [
                (
                    model.machines.output(place, own, (observation, action)),
                    rival.output(place, theirs, (observation, action)),
                )
                for place in range(len(own))
            ]
            assert any(None not in one and one[0] != one[1] for one in both)
    assert found


def test_at_the_end_every_redirected_transition_contradicts_a_step():
    solved = rs.solve("resolvent/House-v0", seed=4)
    machines = solved.machines
    assert solved.guarantee.undistinguished == 0
    for kind, machine in machines.items():
        for state, code in np.argwhere(machine.transitions >= 0).tolist():
            for target in range(machine.states):
                moves = machine.transitions.copy()
                moves[state, code] = target
                other = machines.replacing(replace(machine, transitions=moves))
                explained = other.score(solved.traces)[kind].wrong == 0
                if code not in machine.trivial:
                    assert explained == (target == machine.transitions[state, code])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_grid_with_a_state_more_is_ruled_out(seed):
    solved = rs.solve(gym.make("resolvent/PhaseGrid3-v0"), states=3, seed=seed)
    assert solved.optimal
    assert solved.guarantee.tests > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 5))
def test_a_patrol_is_not_called_optimal_with_a_state_too_few(seed):
    """Plants end episodes in every state: walking into them tells states apart no more."""
    solved = rs.solve(gym.make("resolvent/OfficePatrol-v0"), seed=seed, budget=200_000)
    assert solved.optimal
    assert solved.states["reward"] == 4
    assert solved.plan.run(gym.make("resolvent/OfficePatrol-v0"), episodes=1).returns.mean() == 1


@pytest.mark.parametrize("seed", range(4))
def test_a_label_is_tested_wherever_it_is_read(seed):
    """After the lever, door 0 is nearer, but only from door 5 can it be seen what has changed."""
    solved = rs.solve(TwoDoors(), seed=seed)
    assert solved.optimal
    assert solved.states == {"transition": 2, "reward": 1}
    paid_once_before, paid_for_ever_after = 0.95, 0.95**6 / (1 - 0.95)
    assert solved.value == pytest.approx(paid_once_before + paid_for_ever_after)
