"""The house of the cookie and the two-keys worlds, walked by hand."""

import pytest
from walking import walk

from resolvent.errors import OptionError
from resolvent.worlds import Cookie, TwoKeys
from resolvent.worlds.env import World
from resolvent.worlds.lrm_house import ROOM_OF

# n, s, e and h are the cells of the four rooms; S is where episodes begin.
MAP = """\
...............
.nnn...........
.nnn...........
.nnn...........
..h............
..h............
..h.....eeeeee.
..h.....eeeeee.
..Shhhhheeeeee.
..h.....eeeeee.
..h.....eeeeee.
..h............
..h............
.sss...........
.sss...........
.sss...........
..............."""
ROOMS = {"n": "north", "s": "south", "e": "east", "h": "hallway", "S": "hallway"}

TO_NORTH_WEST = ["up"] * 7 + ["left"]
FROM_NORTH_WEST = ["right"] + ["down"] * 7
TO_SOUTH_EAST = ["down"] * 7 + ["right"]
FROM_SOUTH_EAST = ["left"] + ["up"] * 7
TO_BUTTON = ["right"] * 11
FROM_BUTTON = ["left"] * 11


def events(world: World, *actions: str) -> list[tuple[int, str, float]]:
    """Return the number, event and reward of the steps with an event."""
    walked = walk(world, *actions)
    return [
        (number, *labels, reward)
        for number, (_, labels, reward, _) in enumerate(walked, start=1)
        if labels
    ]


def test_the_rooms_are_those_of_the_map() -> None:
    drawn = {
        (row, column): ROOMS[letter]
        for row, line in enumerate(MAP.splitlines())
        for column, letter in enumerate(line)
        if letter != "."
    }
    assert drawn == ROOM_OF


def test_walls_hold() -> None:
    seen = [observation for observation, *_ in walk(Cookie(), "left", "up", "left", "right")]
    assert seen == ["8,2", "7,2", "7,2", "7,2"]


def test_the_button_puts_out_a_cookie_visible_from_its_room() -> None:
    path = [*TO_BUTTON, *FROM_BUTTON, *TO_NORTH_WEST]
    walked = walk(Cookie(), *path)
    assert events(Cookie(), *path) == [(11, "button", 0.0), (30, "cookie", 1.0)]
    seen = [observation for observation, *_ in walked]
    assert seen[25] == "4,2"
    assert seen[26] == "3,2: west cookie"
    assert seen[28:] == ["1,2: west cookie", "1,1"]
    assert not any(ended for *_, ended in walked)


def test_without_the_button_there_is_no_cookie() -> None:
    assert events(Cookie(), *TO_NORTH_WEST, *FROM_NORTH_WEST, *TO_SOUTH_EAST) == []


def test_each_press_puts_the_next_cookie_into_the_next_corner() -> None:
    north_east = ["up"] * 7 + ["right"]
    again = ["right"]  # a wall is there, so the step ends on the button again
    assert events(Cookie(), *TO_BUTTON, *again, *FROM_BUTTON, *TO_NORTH_WEST) == [
        (11, "button", 0.0),
        (12, "button", 0.0),
    ]
    assert events(Cookie(), *TO_BUTTON, *again, *FROM_BUTTON, *north_east)[-1] == (31, "cookie", 1)
    four = [*TO_BUTTON, *again * 3, *FROM_BUTTON, *TO_SOUTH_EAST]
    assert events(Cookie(), *four)[-1] == (33, "cookie", 1.0)
    five = [*TO_BUTTON, *again * 4, *FROM_BUTTON, *TO_NORTH_WEST]
    assert events(Cookie(), *five)[-1] == (34, "cookie", 1.0)


def test_a_cookie_is_eaten_once() -> None:
    back_and_forth = ["right", "left"]
    path = [*TO_BUTTON, *FROM_BUTTON, *TO_NORTH_WEST, *back_and_forth]
    assert walk(Cookie(), *path)[-1] == ("1,1", set(), 0.0, False)


def test_cookies_can_be_counted_and_end_the_episode() -> None:
    path = [*TO_BUTTON, *FROM_BUTTON, *TO_NORTH_WEST]
    assert walk(Cookie(cookies=1), *path)[-1] == ("1,1: 0 left", {"cookie"}, 1.0, True)
    assert walk(Cookie(cookies=2), *path)[-2] == (
        "1,2: west cookie, 2 left",
        set(),
        0.0,
        False,
    )
    assert walk(Cookie(cookies=2), *path)[-1] == ("1,1: 1 left", {"cookie"}, 1.0, False)


def test_the_best_first_cookie_takes_30_steps() -> None:
    tables = Cookie(cookies=1).mechanics
    assert tables.optimal_values(0.99)[tables.starts[0]] == pytest.approx(0.99**29)


def test_two_keys_open_two_doors_to_the_goal() -> None:
    to_first_door = ["right"] * 7
    path = [
        *TO_NORTH_WEST,
        *FROM_NORTH_WEST,
        *to_first_door,
        *["left"] * 7,
        *TO_SOUTH_EAST,
        *FROM_SOUTH_EAST,
        *["right"] * 11,
        *["up"] * 2,
    ]
    assert events(TwoKeys(), *path) == [
        (8, "north-west key", 0.0),
        (23, "door", 0.0),
        (38, "south-east key", 0.0),
        (55, "door", 0.0),
        (59, "goal", 1.0),
    ]
    assert walk(TwoKeys(), *path)[-1] == ("6,13", {"goal"}, 1.0, True)
    seen = [observation for observation, *_ in walk(TwoKeys(), *path)]
    assert seen[4] == "3,2: west key"
    assert seen[7] == "1,1: key in hand"
    assert seen[21] == "8,8: key in hand, first door closed, second door closed"
    assert seen[22] == "8,9: second door closed"
    assert seen[54] == "8,11"


def test_59_steps_are_optimal() -> None:
    tables = TwoKeys().mechanics
    assert tables.optimal_values(0.99)[tables.starts[0]] == pytest.approx(0.99**58)


def test_a_door_stays_closed_without_a_key() -> None:
    seen = [observation for observation, *_ in walk(TwoKeys(), *["right"] * 8)]
    assert seen[-2:] == ["8,8: first door closed, second door closed"] * 2


def test_one_hand_carries_one_key() -> None:
    both_north = TwoKeys(keys=("north-west", "north-east"))
    walked = walk(both_north, *TO_NORTH_WEST, "right", "right")
    assert walked[6][0] == "1,2: west key, east key"
    assert walked[7:] == [
        ("1,1: key in hand, east key", {"north-west key"}, 0.0, False),
        ("1,2: key in hand, east key", set(), 0.0, False),
        ("1,3: key in hand, east key", set(), 0.0, False),
    ]


@pytest.mark.parametrize("keys", [("north-west",), ("north-west",) * 2, ("attic", "north-west")])
def test_keys_lie_in_two_of_four_corners(keys: tuple[str, ...]) -> None:
    with pytest.raises(OptionError, match="name two of north-west, north-east, south-west"):
        TwoKeys(keys=keys)


def test_a_count_of_no_cookies_is_refused() -> None:
    with pytest.raises(OptionError, match="cookies=0: use at least 1"):
        Cookie(cookies=0)


def test_pictures_show_what_the_agent_cannot_see() -> None:
    cookie = Cookie(render_mode="ansi")
    walk(cookie, *TO_BUTTON)
    drawn = str(cookie.render()).splitlines()
    assert drawn[2] == "│▒▒ C · ·▒▒                     │"
    assert drawn[9] == "│  ▒▒ · · · · · · · · · · · @▒▒ │"
    assert drawn[-2:] == ["@ agent  B button  C cookie", "cookie: north-west"]
    keys = TwoKeys(render_mode="ansi")
    walk(keys, *TO_NORTH_WEST, *FROM_NORTH_WEST, *["right"] * 8)
    drawn = str(keys.render()).splitlines()
    assert drawn[9] == "│  ▒▒ · · · · · · · O @ D · ·▒▒ │"
    assert drawn[-1] == "in hand: nothing"
