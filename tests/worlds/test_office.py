"""The office, compared with its map, and its errands walked by hand."""

from collections import deque
from functools import cache

import numpy as np
import pytest
from walking import walk

import resolvent as rs
from resolvent.errors import OptionError
from resolvent.worlds import Office

MAP = """\
┌───────┬───────┬───────┬───────┐
│ · · · │ · · · │ · · · │ · · · │
│ · B ·   · N ·   · N ·   · C · │
│ · · · │ F · · │ · · · │ · · · │
├──  ───┼──  ───┼──  ───┼──  ───┤
│ · · · │ · · · │ · · · │ · · · │
│ · N · │ · G · │ · E · │ · N · │
│ · · · │ · · · │ · · · │ · · · │
├──  ───┼───────┼───────┼──  ───┤
│ · · · │ · · · │ · · F │ · · · │
│ · A @   · N ·   · N ·   · D · │
│ · · · │ · · · │ · · · │ · · · │
└───────┴───────┴───────┴───────┘"""
NAMES = dict(
    zip("ABCDEFGN", ["a", "b", "c", "d", "mail", "coffee", "office", "plant"], strict=True)
)
DIRECTIONS = {"up": (0, 1), "right": (1, 0), "down": (0, -1), "left": (-1, 0)}


def on_map(x: int, y: int) -> tuple[int, int]:
    """Return the line and the column of a position on the map."""
    row = 8 - y
    return 1 + row + row // 3, 2 + 2 * x + 2 * (x // 3)


def target(x: int, y: int, action: str) -> tuple[int, int]:
    """Return the target of an action on the map."""
    across, up = DIRECTIONS[action]
    there = x + across, y + up
    if not (0 <= there[0] < 12 and 0 <= there[1] < 9):
        return x, y
    line, column = on_map(x, y)
    other_line, other_column = on_map(*there)
    crossed = MAP.splitlines()[(line + other_line) // 2][(column + other_column) // 2]
    return (x, y) if crossed in "│─" else there


def label_on_map(x: int, y: int) -> set[str]:
    line, column = on_map(x, y)
    letter = MAP.splitlines()[line][column]
    return {NAMES[letter]} if letter in NAMES else set()


def end(task: str, *actions: str) -> tuple[object, float, bool]:
    """Return the last observation, reward and termination of an episode."""
    *steps, (observation, _, reward, terminated) = walk(Office(task), *actions)  # type: ignore[arg-type]
    assert all(step[2:] == (0.0, False) for step in steps)
    return observation, reward, terminated


def path(start: tuple[int, int], goal: str) -> tuple[list[str], tuple[int, int]]:
    """Return the shortest path on the map to a position of this name, around the plants."""
    queue = deque([(start, ())])
    met = {start}
    while queue:
        here, actions = queue.popleft()
        if actions and goal in label_on_map(*here):
            return list(actions), here
        for action in DIRECTIONS:
            there = target(*here, action)
            if there not in met and "plant" not in label_on_map(*there):
                met.add(there)
                queue.append((there, (*actions, action)))
    raise AssertionError(goal)


def tour(*goals: str) -> list[str]:
    here, actions = (2, 1), []
    for goal in goals:
        steps, here = path(here, goal)
        actions += steps
    return actions


def test_it_is_drawn_like_its_map() -> None:
    office = Office(render_mode="ansi")
    office.reset()
    drawn = str(office.render()).splitlines()
    assert "\n".join(drawn[:13]) == MAP
    assert drawn[13:] == [
        "@ agent  A a  B b  C c  D d  E mail  F coffee  G office  N plant",
        "fetched: [ ] coffee",
    ]


@pytest.mark.parametrize("task", ["coffee", "patrol"])
def test_transitions_and_labels_are_those_of_the_map(task: str) -> None:
    tables = Office(task).mechanics  # type: ignore[arg-type]
    positions = [tables.observations[code] for code in tables.observation_of]
    left = set()
    for state in range(tables.live):
        assert tables.labels[tables.label_of[state]] == label_on_map(*positions[state])  # type: ignore[misc]
        for number, action in enumerate(tables.actions):
            assert positions[tables.next_state[state, number]] == target(*positions[state], action)  # type: ignore[misc]
            left.add(positions[state])
    assert len(left) == 108 - 6  # episodes end at plants


@pytest.mark.parametrize(
    ("task", "goals"),
    [
        ("coffee", ["coffee", "office"]),
        ("mail", ["mail", "office"]),
        ("both", ["mail", "coffee", "office"]),
        ("both", ["coffee", "mail", "office"]),
        ("patrol", ["a", "b", "c", "d"]),
    ],
)
def test_the_whole_errand_has_the_reward(task: str, goals: list[str]) -> None:
    assert end(task, *tour(*goals))[1:] == (1.0, True)


@pytest.mark.parametrize(
    ("task", "goals"),
    [
        ("coffee", ["mail", "office"]),
        ("mail", ["coffee", "office"]),
        ("both", ["coffee", "office"]),
        ("both", ["mail", "office"]),
        ("patrol", ["b", "c", "d"]),
        ("patrol", ["a", "d"]),
    ],
)
def test_half_of_it_has_none(task: str, goals: list[str]) -> None:
    assert end(task, *tour(*goals))[1:] == (0.0, False)


@pytest.mark.parametrize("task", ["coffee", "mail", "both", "patrol"])
def test_a_plant_ends_the_episode_without_reward(task: str) -> None:
    assert end(task, "right", "right") == ((4, 1), 0.0, True)


@pytest.mark.parametrize(
    ("task", "lowest", "highest"),
    [("coffee", 5e-4, 7e-4), ("mail", 1e-7, 2e-7), ("both", 1e-7, 2e-7), ("patrol", 1e-7, 2e-7)],
)
def test_random_actions_rarely_finish(task: str, lowest: float, highest: float) -> None:
    """Solved exactly: the probability of the reward is the mean of those after each action."""
    tables = Office(task).mechanics  # type: ignore[arg-type]
    live = tables.live
    transitions = np.zeros((live, live))
    for state, action in zip(*np.nonzero(~tables.ends[:live]), strict=True):
        transitions[state, tables.next_state[state, action]] += 0.25
    chance = np.linalg.solve(np.eye(live) - transitions, tables.reward[:live].mean(axis=1))
    assert lowest < chance[tables.starts[0]] < highest


def test_the_best_path_is_as_short_as_on_the_map() -> None:
    office = Office("patrol")
    value = office.mechanics.optimal_values(0.9)[office.mechanics.starts[0]]
    assert value == pytest.approx(0.9 ** (len(tour("a", "b", "c", "d")) - 1))


class Errands:
    """A policy that goes from goal to goal: random walks end in the plants too soon."""

    def __init__(self, office: Office, seed: int) -> None:
        self.names = office.observation_names
        self.actions = office.action_names
        self.rng = np.random.default_rng(seed)
        self.ahead: list[str] = []
        self.expected: object = None
        self.path = cache(lambda here, goal: path(here, goal)[0])

    def __call__(self, seen: int) -> int:
        here = self.names[seen]
        if here != self.expected or not self.ahead:  # at the goal, or in a new episode
            goals = set(NAMES.values()) - {"plant"} - label_on_map(*here)  # type: ignore[misc]
            goal = self.rng.choice(sorted(goals))
            self.ahead = list(self.path(here, str(goal)))
        action = self.ahead.pop(0)
        self.expected = target(*here, action)  # type: ignore[misc]
        return self.actions.index(action)


@pytest.mark.parametrize(
    ("task", "rm_states"), [("coffee", 2), ("mail", 2), ("both", 4), ("patrol", 4)]
)
def test_its_machines_are_found_by_running_errands(task: str, rm_states: int) -> None:
    office = Office(task)  # type: ignore[arg-type]

    def errands(episodes: int, seed: int) -> rs.TraceSet:
        policy = Errands(office, seed)
        return rs.collect(office, episodes=episodes, seed=seed, policy=policy, max_steps=500)

    found = rs.infer(errands(200, seed=0)).machines
    assert (found.transition.states, found.reward.states) == (1, rm_states)
    assert found.score(errands(20, seed=1)).perfect


def test_other_tasks_are_refused() -> None:
    with pytest.raises(OptionError, match="task='tea': give 'coffee', 'mail', 'both' or 'patrol'"):
        Office("tea")  # type: ignore[arg-type]
