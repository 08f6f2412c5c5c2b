"""The office, compared with its map, and its errands walked by hand."""

from collections import deque
from functools import cache

import numpy as np
import pytest

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
MOVES = {"up": (0, 1), "right": (1, 0), "down": (0, -1), "left": (-1, 0)}


def on_map(x: int, y: int) -> tuple[int, int]:
    """The line and the character of the map that show a place."""
    row = 8 - y
    return 1 + row + row // 3, 2 + 2 * x + 2 * (x // 3)


def moved(x: int, y: int, action: str) -> tuple[int, int]:
    """Where the map says that an action leads."""
    across, up = MOVES[action]
    there = x + across, y + up
    if not (0 <= there[0] < 12 and 0 <= there[1] < 9):
        return x, y
    line, place = on_map(x, y)
    other_line, other_place = on_map(*there)
    crossed = MAP.splitlines()[(line + other_line) // 2][(place + other_place) // 2]
    return (x, y) if crossed in "│─" else there


def label_on_map(x: int, y: int) -> set[str]:
    line, place = on_map(x, y)
    letter = MAP.splitlines()[line][place]
    return {NAMES[letter]} if letter in NAMES else set()


def end(task: str, *actions: str) -> tuple[object, float, bool]:
    """Where an episode of these actions gets, what it is paid at last, and whether it is over."""
    office = Office(task)  # type: ignore[arg-type]
    office.reset()
    for number, name in enumerate(actions):
        seen, reward, terminated, _, _ = office.step(office.action_names.index(name))
        assert not terminated or number == len(actions) - 1
        assert reward == 0.0 or terminated
    return office.observation_names[seen], reward, terminated


def way(
    start: tuple[int, int], goal: str, avoid: str = "plant"
) -> tuple[list[str], tuple[int, int]]:
    """The shortest way on the map to a place of this name, around those to avoid."""
    queue = deque([(start, ())])
    met = {start}
    while queue:
        here, taken = queue.popleft()
        if taken and goal in label_on_map(*here):
            return list(taken), here
        for action in MOVES:
            there = moved(*here, action)
            if there not in met and avoid not in label_on_map(*there):
                met.add(there)
                queue.append((there, (*taken, action)))
    raise AssertionError(goal)


def tour(*goals: str) -> list[str]:
    here, taken = (2, 1), []
    for goal in goals:
        steps, here = way(here, goal)
        taken += steps
    return taken


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
def test_every_move_and_label_is_that_of_the_map(task: str) -> None:
    tables = Office(task).mechanics  # type: ignore[arg-type]
    places = [tables.observations[code] for code in tables.observation_of]
    asked = set()
    for state in range(tables.live):
        assert tables.labels[tables.label_of[state]] == label_on_map(*places[state])  # type: ignore[misc]
        for number, action in enumerate(tables.actions):
            assert places[tables.following[state, number]] == moved(*places[state], action)  # type: ignore[misc]
            asked.add(places[state])
    assert len(asked) == 108 - 6  # nobody goes on from a plant


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
def test_doing_the_errand_pays(task: str, goals: list[str]) -> None:
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
def test_half_of_it_does_not(task: str, goals: list[str]) -> None:
    assert end(task, *tour(*goals))[1:] == (0.0, False)


@pytest.mark.parametrize("task", ["coffee", "mail", "both", "patrol"])
def test_a_plant_ends_the_episode_unpaid(task: str) -> None:
    assert end(task, "right", "right") == ((4, 1), 0.0, True)


@pytest.mark.parametrize(
    ("task", "lowest", "highest"),
    [("coffee", 5e-4, 7e-4), ("mail", 1e-7, 2e-7), ("both", 1e-7, 2e-7), ("patrol", 1e-7, 2e-7)],
)
def test_random_actions_rarely_finish(task: str, lowest: float, highest: float) -> None:
    """Solved exactly: the chance to be paid is the mean of those after each action."""
    tables = Office(task).mechanics  # type: ignore[arg-type]
    live = tables.live
    leads = np.zeros((live, live))
    for state, action in zip(*np.nonzero(~tables.ends[:live]), strict=True):
        leads[state, tables.following[state, action]] += 0.25
    chance = np.linalg.solve(np.eye(live) - leads, tables.reward[:live].mean(axis=1))
    assert lowest < chance[tables.starts[0]] < highest


def test_the_best_way_is_as_short_as_on_the_map() -> None:
    office = Office("patrol")
    value = office.mechanics.optimal_values(0.9)[office.mechanics.starts[0]]
    assert value == pytest.approx(0.9 ** (len(tour("a", "b", "c", "d")) - 1))


class Errands:
    """A policy that goes from place to place: random walks end in the plants too soon."""

    def __init__(self, office: Office, seed: int) -> None:
        self.names = office.observation_names
        self.actions = office.action_names
        self.rng = np.random.default_rng(seed)
        self.ahead: list[str] = []
        self.expected: object = None
        self.ways = cache(lambda here, goal: way(here, goal)[0])

    def __call__(self, seen: int) -> int:
        here = self.names[seen]
        if here != self.expected or not self.ahead:  # there, or in a new episode
            goals = set(NAMES.values()) - {"plant"} - label_on_map(*here)  # type: ignore[misc]
            goal = self.rng.choice(sorted(goals))
            self.ahead = list(self.ways(here, str(goal)))
        action = self.ahead.pop(0)
        self.expected = moved(*here, action)  # type: ignore[misc]
        return self.actions.index(action)


@pytest.mark.parametrize(
    ("task", "rm_states"), [("coffee", 2), ("mail", 2), ("both", 4), ("patrol", 4)]
)
def test_its_machines_are_found_by_running_errands(task: str, rm_states: int) -> None:
    office = Office(task)  # type: ignore[arg-type]

    def errands(episodes: int, seed: int) -> rs.TraceSet:
        policy = Errands(office, seed)
        return rs.collect(office, episodes=episodes, seed=seed, policy=policy, max_steps=500)

    found = rs.infer(errands(1_000, seed=0)).machines
    assert (found.transition.states, found.reward.states) == (1, rm_states)
    assert found.score(errands(50, seed=1)).perfect


def test_other_tasks_are_refused() -> None:
    with pytest.raises(OptionError, match="task='tea': use 'coffee', 'mail', 'both' or 'patrol'"):
        Office("tea")  # type: ignore[arg-type]
