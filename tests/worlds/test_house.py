"""The house, walked by hand through Figure 1 of the paper."""

import importlib

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import resolvent.worlds
from resolvent.errors import OptionError
from resolvent.worlds import House

IDS = ["resolvent/House-v0", "resolvent/HouseInterference-v0"]


def walk(house: House, *actions: str) -> list[tuple[str, set[str], float, bool]]:
    """Reset, do the actions, and return (room, labels, reward, terminated) of each step."""
    house.reset()
    steps = []
    for name in actions:
        observation, reward, terminated, truncated, info = house.step(
            House.action_names.index(name)
        )
        assert not truncated
        steps.append((House.observation_names[observation], info["labels"], reward, terminated))
    return steps


def rooms(house: House, *actions: str) -> list[str]:
    return [room for room, *_ in walk(house, *actions)]


def test_an_episode_starts_in_the_corridor_without_an_event() -> None:
    observation, info = House().reset()
    assert House.observation_names[observation] == "corridor"
    assert info == {"labels": frozenset()}


def test_the_whole_task_pays_at_the_end() -> None:
    assert walk(House(), "left", "right", "up", "down", "right", "sit") == [
        ("orangeroom", {"key"}, 0.0, False),
        ("corridor", set(), 0.0, False),
        ("cyanroom", {"toilet"}, 0.0, False),
        ("corridor", set(), 0.0, False),
        ("limegreenroom", {"sofa"}, 0.0, False),
        ("limegreenroom", {"sofa"}, 1.0, True),
    ]


def test_the_cyanroom_is_locked_without_the_key() -> None:
    assert rooms(House(), "up", "right", "left", "up") == [
        "corridor",
        "limegreenroom",
        "corridor",
        "corridor",
    ]


def test_the_key_stays_taken() -> None:
    walked = rooms(House(), "left", "right", "up", "down", "right", "left", "up")
    assert walked[-1] == "cyanroom"


def test_sitting_on_the_sofa_too_early_ends_unpaid() -> None:
    assert walk(House(), "right", "sit")[-1] == ("limegreenroom", {"sofa"}, 0.0, True)
    assert walk(House(), "left", "right", "right", "sit")[-1][2:] == (0.0, True)


@pytest.mark.parametrize(
    ("way", "idle"),
    [
        ((), ("down", "sit")),
        (("left",), ("up", "down", "left", "sit")),
        (("left", "right", "up"), ("up", "left", "right", "sit")),
        (("right",), ("up", "down", "right")),
    ],
)
def test_every_other_action_does_nothing(way: tuple[str, ...], idle: tuple[str, ...]) -> None:
    house = House()
    here = rooms(house, *way)[-1] if way else "corridor"
    for action in idle:
        room, _, reward, terminated = walk(house, *way, action)[-1]
        assert (room, reward, terminated) == (here, 0.0, False)


def test_interference_pays_for_entering_the_cyanroom() -> None:
    house = House(pays="cyanroom")
    assert walk(house, "up")[-1] == ("corridor", set(), 0.0, False)
    assert walk(house, "left", "right", "up")[-1] == ("cyanroom", {"toilet"}, 1.0, True)
    assert walk(house, "left", "right", "right", "sit")[-1][2:] == (0.0, True)


def test_reset_locks_the_cyanroom_again() -> None:
    house = House()
    walk(house, "left", "right", "up", "down", "right", "sit")
    assert rooms(house, "up") == ["corridor"]
    assert walk(house, "right", "sit")[-1][2:] == (0.0, True)


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("render_mode", [None, "ansi"])
def test_gymnasium_accepts_it(name: str, render_mode: str | None) -> None:
    check_env(gym.make(name, render_mode=render_mode).unwrapped)


def test_registered_variants_differ_in_what_pays() -> None:
    assert [gym.make(name).get_wrapper_attr("pays") for name in IDS] == ["sofa", "cyanroom"]
    assert all(gym.spec(name).max_episode_steps is None for name in IDS)


def test_importing_again_registers_nothing_twice() -> None:
    importlib.reload(resolvent.worlds)
    assert isinstance(gym.make("resolvent.worlds:resolvent/House-v0").unwrapped, House)
    assert isinstance(gym.make("resolvent:resolvent/House-v0").unwrapped, House)


def test_the_seed_makes_no_difference() -> None:
    actions = np.random.default_rng(0).integers(4, size=200)  # all moves, so nothing ends

    def rollout(seed: int) -> list[tuple[object, ...]]:
        house = House()
        return [house.reset(seed=seed), *(house.step(action) for action in actions)]

    assert rollout(0) == rollout(1)


def test_render_shows_agent_lock_and_key() -> None:
    house = House(render_mode="ansi")
    house.reset()
    assert house.render() == "\n".join(
        [
            "                +---------------+",
            "                |   cyanroom    |",
            "                |    toilet     |",
            "                |               |",
            "+---------------+----locked-----+---------------+",
            "|  orangeroom   |   corridor    | limegreenroom |",
            "|      key      |               |     sofa      |",
            "|               |    (agent)    |               |",
            "+---------------+---------------+---------------+",
            "key not taken, toilet not visited",
        ]
    )
    walk(house, "left", "right", "up")
    picture = house.render()
    assert picture is not None
    assert "open" in picture
    assert "|      key      |" not in picture
    assert picture.splitlines()[3].strip() == "|    (agent)    |"
    assert picture.endswith("key taken, toilet visited")


def test_pixels_show_rooms_and_the_locked_door() -> None:
    house = House(render_mode="rgb_array")

    def colours(*actions: str) -> list[tuple[int, ...]]:
        """Those of the key's room, the toilet's, the sofa's, and of the door to the toilet."""
        walk(house, *actions)
        image = house.render()
        assert isinstance(image, np.ndarray)
        left, size = (image.shape[1] - 3 * 72) // 2, 72
        spots = [(1, 0), (0, 1), (1, 2)]
        rooms = [image[16 + size * row + 9, left + size * column + 9] for row, column in spots]
        return [tuple(one.tolist()) for one in (*rooms, image[16 + size, left + size + size // 2])]

    orange, cyan, limegreen, locked = colours()
    assert (orange[0] > 200, cyan[2] > 200, limegreen[1] > 200) == (True, True, True)
    assert max(locked) < 100
    room, *_, door = colours("left", "right")
    assert room != orange
    assert min(door) > 200


def test_nothing_is_drawn_unless_asked() -> None:
    assert House().render() is None


def test_unknown_choices_are_refused() -> None:
    with pytest.raises(OptionError, match="pays='bed': use 'sofa' or 'cyanroom'"):
        House(pays="bed")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="render_mode='human'"):
        House(render_mode="human")  # type: ignore[arg-type]
    house = House()
    house.reset()
    for action in (5, -1, "up", 1.5):
        with pytest.raises(OptionError, match="is not one of 0 up, 1 down, 2 left, 3 right, 4 sit"):
            house.step(action)  # type: ignore[arg-type]
