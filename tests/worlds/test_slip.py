"""Worlds with slipping actions, and worlds as published, where objects are placed at random."""

from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import resolvent as rs
from resolvent.errors import OptionError
from resolvent.rl.rollout import random_actions
from resolvent.rl.tabular import tabular_view
from resolvent.worlds import Cookie, House, Symbol, TMaze, TwoKeys
from resolvent.worlds.env import World

WORLDS: list[tuple[str, dict[str, Any]]] = [
    ("resolvent/House-v0", {}),
    ("resolvent/HouseInterference-v0", {}),
    ("resolvent/PhaseGrid3-v0", {}),
    ("resolvent/RandomWorld-v0", {"size": 9}),
    ("resolvent/OfficeCoffee-v0", {}),
    ("resolvent/OfficePatrol-v0", {}),
    ("resolvent/Cookie-v0", {}),
    ("resolvent/Cookie-v0", {"published": True}),
    ("resolvent/TwoKeys-v0", {}),
    ("resolvent/TwoKeys-v0", {"published": True}),
    ("resolvent/Symbol-v0", {}),
    ("resolvent/TMaze-v0", {}),
]


@pytest.mark.parametrize(("name", "options"), WORLDS)
def test_gymnasium_accepts_it(name: str, options: dict[str, Any]) -> None:
    check_env(gym.make(name, slip=0.1, render_mode="ansi", **options).unwrapped)


@pytest.mark.parametrize(("name", "options"), WORLDS)
@pytest.mark.parametrize("slip", [0.0, 0.3])
def test_collecting_step_by_step_and_walking_the_tables_agree(
    name: str, options: dict[str, Any], slip: float
) -> None:
    env = gym.make(name, slip=slip, **options)
    space = random_actions(env, seed=7)
    walked = rs.collect(env, episodes=20, seed=7, max_steps=100)
    stepped = gym.make(name, slip=slip, **options)

    def sample(seen: Any) -> Any:
        return space.sample()

    assert walked == rs.collect(stepped, episodes=20, seed=7, max_steps=100, policy=sample)
    # Afterwards the generators are in the same state, so that continuing gives the same.
    first, second = env.unwrapped, stepped.unwrapped
    assert isinstance(first, World)
    assert isinstance(second, World)
    assert first.chance.random() == second.chance.random()


@pytest.mark.parametrize(("name", "options"), WORLDS)
def test_the_share_of_steps_that_slip(name: str, options: dict[str, Any]) -> None:
    slip = 0.2
    world = gym.make(name, slip=slip, **options).unwrapped
    assert isinstance(world, World)
    tables = world.mechanics
    n = 100_000
    actions = np.random.default_rng(0).integers(len(tables.actions), size=n)
    drawn = np.random.default_rng(1).random((n, tables.draws))
    executed, outcome = np.divmod(tables.realize(actions, drawn), tables.chances)
    assert np.mean(executed != actions) == pytest.approx(slip, abs=0.005)
    shift = ((executed - actions) % len(tables.actions))[executed != actions]
    shares = np.bincount(shift, minlength=len(tables.actions))[1:] / len(shift)
    assert shares == pytest.approx(1 / (len(tables.actions) - 1), abs=0.02)
    assert np.bincount(outcome) / n == pytest.approx(1 / tables.chances, abs=0.01)


def test_drawn_numbers_choose_the_realized_actions() -> None:
    drawn = np.array([[0.0], [0.199], [0.5]])
    realized = House(slip=0.2).mechanics.realize(np.array([4, 4, 4]), drawn)
    assert realized.tolist() == [0, 3, 4]


@pytest.mark.parametrize(("name", "options"), WORLDS)
def test_copies_in_a_vector_slip_independently(name: str, options: dict[str, Any]) -> None:
    env = gym.make_vec(
        name, num_envs=200, vectorization_mode="vector_entry_point", slip=0.3, **options
    )
    played = []
    for _ in range(2):
        seen, _ = env.reset(seed=3)
        actions = np.random.default_rng(0).integers(4, size=20)
        played.append(np.array([seen, *(env.step(np.full(200, one))[0] for one in actions)]))
    assert np.array_equal(*played)
    assert len(np.unique(played[0], axis=1).T) > 10


def test_values_are_those_of_the_random_walk_that_they_expect() -> None:
    """In the T-maze of length 1 with slip s, worked out by hand: right, then turn.

    At the junction the right turn pays; it slips to the wrong one with s/3, which ends
    the episode unpaid, and to left (back to the start) or right (stays) with s/3 each.
    """
    slip, gamma = 0.3, 0.9
    tables = TMaze(1, slip=slip).mechanics
    values = tables.optimal_values(gamma)
    begin, junction = (
        {float(values[s]) for s in range(tables.live) if tables.true_states[s].x == x}
        for x in (0, 1)
    )
    v0, v1 = begin.pop(), junction.pop()
    assert not begin
    assert not junction
    assert v1 == pytest.approx((1 - slip) + slip / 3 * gamma * v0 + slip / 3 * gamma * v1)
    assert v0 == pytest.approx(gamma * ((1 - slip) * v1 + slip * v0))


def test_a_tiny_slip_hardly_changes_values() -> None:
    tables = House().mechanics
    tiny = replace(tables, slip=1e-13)
    assert tiny.optimal_values(0.9) == pytest.approx(tables.optimal_values(0.9), abs=1e-11)


def test_the_best_policy_has_the_mean_return_of_its_value() -> None:
    """The best policy on the true state has the expected return."""
    world = House(slip=0.2)
    tables, gamma = world.mechanics, 0.9
    values = tables.optimal_values(gamma)
    ahead = np.where(tables.ends, 0.0, gamma) * values[tables.next_state]
    best = tables.expected(tables.reward + ahead).argmax(axis=1)
    returns = []
    for episode in range(3_000):
        world.reset(seed=0 if episode == 0 else None)
        total, weight, ended = 0.0, 1.0, False
        while not ended:
            _, reward, ended, _, _ = world.step(int(best[world.state]))
            total, weight = total + weight * reward, weight * gamma
        returns.append(total)
    expected = float(values[tables.starts].mean())
    assert np.mean(returns) == pytest.approx(expected, abs=4 * np.std(returns) / 3_000**0.5)


@pytest.mark.parametrize(
    ("world", "states"),
    [
        (House(slip=0.1), 2),
        (Cookie(slip=0.05), 8),
        (Cookie(published=True), 4),
        (TwoKeys(published=True, slip=0.05), 7),
        (Symbol(), 10),
    ],
)
def test_its_true_machines_have_the_promised_states(world: World, states: int) -> None:
    assert world.machines().transition.states == states


def test_most_outputs_of_a_world_that_slips_are_those_of_its_machines() -> None:
    world = gym.make("resolvent/TwoKeys-v0", slip=0.05)
    truth = world.unwrapped.machines()  # type: ignore[attr-defined]
    score = truth.score(rs.collect(world, episodes=5, seed=0)).transition
    assert 0.94 < score.right / (score.right + score.wrong) < 0.99


def test_a_cookie_lies_in_a_random_corner() -> None:
    world = Cookie(published=True)
    corners = set()
    for seed in range(40):
        world.reset(seed=seed)
        for action in ["right"] * 11:
            world.step(world.action_names.index(action))
        corners.add(world.mechanics.true_states[world.state].corner)
    assert corners == {"north-west", "north-east", "south-west", "south-east"}


def test_keys_lie_in_one_room_or_in_both_equally_often() -> None:
    tables = TwoKeys(published=True).mechanics
    corners = [tables.true_states[state].keys_left for state in tables.starts]
    north = [sum(key.startswith("north") for key in keys) for keys in corners]
    assert np.bincount(north).tolist() == [4, 4, 4]
    assert len(set(corners)) == 6


def test_a_sign_names_the_symbol_with_the_reward() -> None:
    world = Symbol()
    rewards = {}
    for seed in range(60):
        world.reset(seed=seed)
        now = world.mechanics.true_states[world.state]
        for action in ["up"] * 7:
            _, reward, ended, _, _ = world.step(world.action_names.index(action))
        assert ended
        rewards[now.symbol, now.arrow] = reward
    assert len(rewards) == 9
    assert {sign for sign, reward in rewards.items() if reward == 1} == {
        ("diamond", "go north"),
        ("diamond", "go anywhere"),
    }


def test_learners_do_not_use_tables_of_slipping_worlds() -> None:
    assert tabular_view(House(slip=0.1)) == "the steps of House are random"


@pytest.mark.parametrize("slip", [-0.1, 1.0, float("nan")])
def test_a_slip_that_is_no_share_is_refused(slip: float) -> None:
    with pytest.raises(OptionError, match="slip="):
        House(slip=slip)


def test_a_published_cookie_world_never_ends() -> None:
    with pytest.raises(OptionError, match="omit it"):
        Cookie(cookies=3, published=True)
