"""The solver against all policies there are, in exact fractions."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning_oracles import all_policies
from resolvent.planning.deterministic import RewardingCycle, solve

Tables = tuple[list[list[int]], list[list[float]]]


@st.composite
def tables(draw: Any, rewards: Any = (-1.0, -0.25, 0.0, 0.5, 1.0)) -> Tables:
    """The next state of each step (−1: an end) and its reward, for up to four states."""
    states, actions = draw(st.integers(1, 4)), draw(st.integers(1, 3))

    def table(values: Any) -> Any:
        row = st.lists(values, min_size=actions, max_size=actions)
        return draw(st.lists(row, min_size=states, max_size=states))

    return table(st.integers(-1, states - 1)), table(st.sampled_from(rewards))


def solved(world: Tables, gamma: float) -> Any:
    following, reward = world
    return solve(np.array(following, np.int32), np.array(reward), gamma)


def path(world: Tables, policy: Any, start: int) -> tuple[list[float], list[float]]:
    """The rewards of a policy on its path, and those of the cycle at its end, if any."""
    following, reward = world
    visited: dict[int, int] = {}
    rewards: list[float] = []
    while start >= 0 and start not in visited:
        visited[start] = len(rewards)
        rewards.append(reward[start][policy[start]])
        start = following[start][policy[start]]
    cycle = rewards[visited[start] :] if start >= 0 else []
    return rewards[: len(rewards) - len(cycle)], cycle


def discounted(world: Tables, policy: Any, start: int, gamma: Fraction) -> Fraction:
    first, cycle = path(world, policy, start)
    value = Fraction(0)
    if cycle:
        once = sum((Fraction(r) * gamma**t for t, r in enumerate(cycle)), Fraction(0))
        value = once / (1 - gamma ** len(cycle))
    for reward in reversed(first):
        value = Fraction(reward) + gamma * value
    return value


@settings(deadline=None, max_examples=300)
@given(tables(), st.sampled_from([0.25, 0.5, 0.9, 0.99, 1 - 2**-20]))
def test_no_policy_has_a_higher_value_and_ties_go_to_the_first_action(world, gamma) -> None:
    following, reward = world
    exact = Fraction(gamma)
    states = range(len(reward))
    policies = list(all_policies(len(reward), len(reward[0])))
    best = [max(discounted(world, policy, z, exact) for policy in policies) for z in states]
    solution = solved(world, gamma)
    for z in states:
        assert abs(Fraction(solution.value[z]) - best[z]) <= solution.rounding[z]
        assert solution.rounding[z] <= 1e-13 / (1 - gamma)
        value = [
            Fraction(r) + (exact * best[to] if to >= 0 else 0)
            for to, r in zip(following[z], reward[z], strict=True)
        ]
        assert solution.policy[z] <= value.index(max(value))
        assert max(value) - value[solution.policy[z]] <= 1e-13 / (1 - gamma)
        if gamma <= 0.5:  # no two worths differ by rounding alone
            assert solution.policy[z] == value.index(max(value))


def undiscounted(world: Tables, policy: Any, start: int) -> float:
    first, cycle = path(world, policy, start)
    return sum(first) if not any(cycle) else -math.inf


@settings(deadline=None, max_examples=300)
@given(tables(rewards=(-1.0, -0.25, 0.0, 0.0, 0.5)))
def test_without_discount_only_a_rewarding_cycle_is_refused(world) -> None:
    states = range(len(world[1]))
    policies = list(all_policies(len(world[1]), len(world[1][0])))
    cycles = [path(world, policy, z)[1] for policy in policies for z in states]
    if any(sum(cycle) > 0 for cycle in cycles):
        with pytest.raises(RewardingCycle) as caught:
            solved(world, 1.0)
        where, what = caught.value.states, caught.value.actions
        assert sum(world[1][z][a] for z, a in zip(where, what, strict=True)) > 0
        led = [world[0][z][a] for z, a in zip(where, what, strict=True)]
        assert led == [*where[1:], where[0]]
        return
    solution = solved(world, 1.0)
    for z in states:
        assert solution.value[z] == max(undiscounted(world, policy, z) for policy in policies)
        if np.isfinite(solution.value[z]):
            assert undiscounted(world, solution.policy, z) == solution.value[z]


def test_a_reward_far_away_is_not_lost_in_rounding() -> None:
    cells = 700
    following = [[cell, cell + 1] for cell in range(cells)]
    reward = [[0.0, 0.0] for _ in range(cells)]
    following[-1], reward[-1] = [cells - 1, -1], [0.0, 1.0]
    reward[0][0] = -20.0
    for gamma in (0.95, 1.0):
        solution = solved((following, reward), gamma)
        assert solution.policy.tolist() == [1] * cells
        assert solution.value[0] == pytest.approx(gamma ** (cells - 1), rel=1e-12)


def test_rounding_creates_no_rewarding_cycle() -> None:
    # 0.1 + 0.2 − 0.3 is not 0 in floating point.
    assert 0.1 + 0.2 - 0.3 > 0
    solution = solved(([[1, -1], [2, -1], [0, -1]], [[0.1, 0.0], [0.2, 0.0], [-0.3, 0.0]]), 1.0)
    assert solution.value == pytest.approx([0.3, 0.2, 0.0], abs=1e-12)
    assert solution.policy.tolist() == [0, 0, 1]


def test_infinite_values_without_discount() -> None:
    # From 0 an unknown step on the left; on the right one may rest.
    hopeful = solved(([[-1, 1], [1, 1]], [[math.inf, 0.0], [0.0, -1.0]]), 1.0)
    assert hopeful.value.tolist() == [math.inf, 0.0]
    assert hopeful.policy.tolist() == [0, 0]
    wary = solved(([[-1, 1], [1, 1]], [[-math.inf, 0.0], [0.0, -1.0]]), 1.0)
    assert wary.value.tolist() == [0.0, 0.0]
    assert wary.policy.tolist() == [1, 0]
    lost = solved(([[0]], [[-1.0]]), 1.0)
    assert lost.value.tolist() == [-math.inf]
