"""The house, walked by hand through Figure 1 of the paper."""

import importlib

import gymnasium as gym
import numpy as np
import pytest
from walking import walk

import resolvent.worlds
from resolvent.errors import OptionError
from resolvent.worlds import House

IDS = ["resolvent/House-v0", "resolvent/HouseInterference-v0"]


def rooms(house: House, *actions: str) -> list[object]:
    return [room for room, *_ in walk(house, *actions)]


def test_an_episode_starts_in_the_corridor_without_an_event() -> None:
    observation, info = House().reset()
    assert House.observation_names[observation] == "corridor"
    assert info == {"labels": frozenset()}


def test_the_whole_task_has_its_reward_at_the_end() -> None:
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


def test_sitting_on_the_sofa_too_early_ends_without_reward() -> None:
    assert walk(House(), "right", "sit")[-1] == ("limegreenroom", {"sofa"}, 0.0, True)
    assert walk(House(), "left", "right", "right", "sit")[-1][2:] == (0.0, True)


@pytest.mark.parametrize(
    ("before", "idle"),
    [
        ((), ("down", "sit")),
        (("left",), ("up", "down", "left", "sit")),
        (("left", "right", "up"), ("up", "left", "right", "sit")),
        (("right",), ("up", "down", "right")),
    ],
)
def test_all_other_actions_do_nothing(before: tuple[str, ...], idle: tuple[str, ...]) -> None:
    house = House()
    here = rooms(house, *before)[-1] if before else "corridor"
    for action in idle:
        room, _, reward, terminated = walk(house, *before, action)[-1]
        assert (room, reward, terminated) == (here, 0.0, False)


def test_interference_rewards_entering_the_cyanroom() -> None:
    house = House(goal="cyanroom")
    assert walk(house, "up")[-1] == ("corridor", set(), 0.0, False)
    assert walk(house, "left", "right", "up")[-1] == ("cyanroom", {"toilet"}, 1.0, True)
    assert walk(house, "left", "right", "right", "sit")[-1][2:] == (0.0, True)


def test_reset_locks_the_cyanroom_again() -> None:
    house = House()
    walk(house, "left", "right", "up", "down", "right", "sit")
    assert rooms(house, "up") == ["corridor"]
    assert walk(house, "right", "sit")[-1][2:] == (0.0, True)


def test_registered_variants_differ_in_their_goal() -> None:
    assert [gym.make(name).get_wrapper_attr("goal") for name in IDS] == ["sofa", "cyanroom"]
    assert all(gym.spec(name).max_episode_steps is None for name in IDS)


def test_importing_again_registers_nothing_twice() -> None:
    importlib.reload(resolvent.worlds)
    assert isinstance(gym.make("resolvent.worlds:resolvent/House-v0").unwrapped, House)
    assert isinstance(gym.make("resolvent:resolvent/House-v0").unwrapped, House)


def test_the_seed_makes_no_difference() -> None:
    actions = np.random.default_rng(0).integers(4, size=200)  # no "sit", so nothing ends

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

    def colors(*actions: str) -> list[tuple[int, ...]]:
        """Return the colors of the rooms of key, toilet and sofa, and of the door to the toilet."""
        walk(house, *actions)
        image = house.render()
        assert isinstance(image, np.ndarray)
        left, size = (image.shape[1] - 3 * 72) // 2, 72
        spots = [(1, 0), (0, 1), (1, 2)]
        rooms = [image[16 + size * row + 9, left + size * column + 9] for row, column in spots]
        return [
            tuple(color.tolist()) for color in (*rooms, image[16 + size, left + size + size // 2])
        ]

    orange, cyan, limegreen, locked = colors()
    assert (orange[0] > 200, cyan[2] > 200, limegreen[1] > 200) == (True, True, True)
    assert max(locked) < 100
    room, *_, door = colors("left", "right")
    assert room != orange
    assert min(door) > 200


def test_without_a_mode_nothing_is_drawn() -> None:
    assert House().render() is None


def test_unknown_choices_are_refused() -> None:
    with pytest.raises(OptionError, match="goal='bed': give 'sofa' or 'cyanroom'"):
        House(goal="bed")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="render_mode='human'"):
        House(render_mode="human")  # type: ignore[arg-type]
    house = House()
    house.reset()
    for action in (5, -1, "up", 1.5):
        with pytest.raises(OptionError, match="is not one of 0 up, 1 down, 2 left, 3 right, 4 sit"):
            house.step(action)  # type: ignore[arg-type]
