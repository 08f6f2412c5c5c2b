"""Properties of all worlds: Gymnasium accepts them, and their true machines explain them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import resolvent as rs
from resolvent.registration import WORLDS
from resolvent.worlds import Cookie, House, Office, PhaseGrid, RandomWorld, TMaze, TwoKeys
from resolvent.worlds.env import World

IDS = [f"resolvent/{name}-v0" for name in WORLDS if name != "Symbol"]
"""All worlds but one whose machines do not explain all of it: chance hides what the sign says."""

# Each world with the numbers of states that its docstring promises.
KNOWN: list[tuple[Callable[[], World], int, int]] = [
    (House, 2, 2),
    (lambda: House(goal="cyanroom"), 2, 1),
    (lambda: PhaseGrid(3), 1, 2),
    (lambda: PhaseGrid(4), 1, 3),
    (lambda: PhaseGrid(5), 1, 4),
    (RandomWorld, 7, 2),
    (lambda: RandomWorld(2, size=9, tm_states=4, rm_states=4), 4, 3),
    (lambda: Office("coffee"), 1, 2),
    (lambda: Office("mail"), 1, 2),
    (lambda: Office("both"), 1, 4),
    (lambda: Office("patrol"), 1, 4),
    (Cookie, 8, 1),
    (lambda: Cookie(cookies=1), 5, 1),
    (lambda: Cookie(cookies=3), 8, 1),
    (TwoKeys, 4, 1),
    (lambda: TwoKeys(keys=("south-west", "south-east")), 4, 1),
    (TMaze, 2, 1),
    (lambda: TMaze(1), 2, 1),
]


def random_walks(world: World, episodes: int, seed: int, max_steps: int) -> rs.TraceSet:
    world.reset(seed=seed)
    starts = world.draw_starts(episodes)
    return world.mechanics.rollouts(starts, np.random.default_rng(seed), max_steps)


def stepped(name: str, seed: int, steps: int = 200) -> list[Any]:
    """Return all that random actions observe, over several resets."""
    env = gym.make(name)
    env.action_space.seed(seed)
    seen: list[Any] = [env.reset(seed=seed)]
    for _ in range(steps):
        seen.append(env.step(env.action_space.sample()))
        if seen[-1][2] or seen[-1][3]:
            seen.append(env.reset())
    return seen


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("render_mode", ["ansi", "rgb_array"])
def test_gymnasium_accepts_it(name: str, render_mode: str) -> None:
    check_env(gym.make(f"resolvent:{name}", render_mode=render_mode).unwrapped)


@pytest.mark.parametrize("name", IDS)
def test_the_same_seed_gives_the_same_episodes(name: str) -> None:
    assert stepped(name, seed=3) == stepped(name, seed=3)
    assert stepped(name, seed=3) != stepped(name, seed=4)


@pytest.mark.parametrize("name", IDS)
def test_copies_in_a_vector_behave_as_one(name: str) -> None:
    env = gym.make_vec(name, num_envs=3, vectorization_mode="vector_entry_point")
    alone = gym.make(name)
    assert alone.spec is not None
    assert env.unwrapped.max_episode_steps == alone.spec.max_episode_steps  # type: ignore[attr-defined]
    seen, info = env.reset(seed=0)
    one = alone.reset(options={"start": int(seen[1])})
    assert one == (seen[1], {"labels": info["labels"][1]})
    for action in np.random.default_rng(0).integers(alone.action_space.n, size=50):  # type: ignore[attr-defined]
        seen, rewards, terminated, _, info = env.step(np.full(3, action))
        observation, reward, ended, _, alone_info = alone.step(action)
        assert (seen[1], rewards[1], terminated[1]) == (observation, reward, ended)
        assert info["labels"][1] == alone_info["labels"]
        if ended:
            break


@pytest.mark.parametrize("name", IDS)
def test_pictures_of_a_world_have_one_size(name: str) -> None:
    env = gym.make(name, render_mode="rgb_array")
    env.reset(seed=0)
    world = env.unwrapped
    assert isinstance(world, World)
    states = range(0, world.mechanics.states, max(1, world.mechanics.states // 20))
    pictures = [world.picture(state).rgb_array() for state in states]
    assert {picture.shape for picture in pictures} == {np.shape(env.render())}
    assert pictures[0].dtype == np.uint8
    assert pictures[0].ndim == 3
    assert any(not np.array_equal(pictures[0], later) for later in pictures[1:])


@pytest.mark.parametrize("name", IDS)
def test_texts_show_the_agent_and_the_memory(name: str) -> None:
    env = gym.make(name, render_mode="ansi")
    env.reset(seed=0)
    drawn = str(env.render())
    assert ("@" in drawn) or ("(agent)" in drawn)
    assert env.unwrapped.picture(0).captions  # type: ignore[attr-defined]


@pytest.mark.parametrize(("make", "tm_states", "rm_states"), KNOWN)
def test_its_true_machines_are_minimal_and_explain_it(
    make: Callable[[], World], tm_states: int, rm_states: int
) -> None:
    world = make()
    truth = world.machines()
    assert (truth.transition.states, truth.reward.states) == (tm_states, rm_states)
    assert truth.transition.is_minimal()
    assert truth.reward.is_minimal()
    assert truth.termination.ambiguous == frozenset()
    assert truth.score(random_walks(world, 200, seed=5, max_steps=1_000)).perfect


@pytest.mark.parametrize(
    ("make", "episodes", "max_steps"),
    [
        (House, 100, 1_000),
        (lambda: House(goal="cyanroom"), 100, 1_000),
        (lambda: PhaseGrid(3), 200, 1_000),
        (lambda: PhaseGrid(4), 200, 1_000),
        (lambda: PhaseGrid(5), 500, 1_000),
        (lambda: RandomWorld(2, size=9, tm_states=4, rm_states=4), 4_000, 1_000),
        (Cookie, 100, 50_000),
        (lambda: Cookie(cookies=1), 1_000, 20_000),
        (TwoKeys, 200, 20_000),
        (TMaze, 100, 1_000),
    ],
)
def test_random_walks_give_its_machines(
    make: Callable[[], World], episodes: int, max_steps: int
) -> None:
    world = make()
    walks = random_walks(world, episodes, seed=0, max_steps=max_steps)
    found = rs.infer(walks, timing=world.timing).machines
    truth = world.machines()
    assert found.transition.states == truth.transition.states
    assert found.reward.states == truth.reward.states
    assert found.score(random_walks(world, 50, seed=1, max_steps=max_steps)).perfect


@pytest.mark.parametrize("name", IDS)
def test_its_true_machines_explain_what_is_collected(name: str) -> None:
    env = gym.make(name)
    world = env.unwrapped
    assert isinstance(world, World)
    traces = rs.collect(env, episodes=20, seed=7, max_steps=100)
    assert set(traces.actions) <= set(world.action_names)
    assert set(traces.observations) <= set(world.observation_names)
    assert world.machines().score(traces).perfect


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_its_traces_can_be_saved(name: str, ending: str, tmp_path: Path) -> None:
    traces = rs.collect(gym.make(name), episodes=5, seed=0, max_steps=50)
    traces.save(tmp_path / f"traces.{ending}")
    assert rs.read_traces(tmp_path / f"traces.{ending}") == traces
