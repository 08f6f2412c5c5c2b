"""The two-keys world: two doors, a key for each, and one hand to carry them."""

from collections.abc import Sequence
from typing import NamedTuple

from resolvent._util.validation import shown
from resolvent.errors import OptionError
from resolvent.traces.symbols import NO_EVENT, Label
from resolvent.worlds.drawing import Cell, Picture
from resolvent.worlds.env import World
from resolvent.worlds.lrm_house import (
    COLUMNS,
    CORNERS,
    MOVES,
    ROWS,
    START,
    WALLS,
    moved,
    room_of,
    seen_from,
    side,
    view,
)
from resolvent.worlds.mechanics import Mechanics

DOORS: tuple[Cell, Cell] = ((8, 9), (8, 11))
GOAL: Cell = (6, 13)

_KEY_ROOMS = ("north", "south")

_INNER_WALLS = frozenset(
    (row, column) for row in range(6, 11) for _, column in DOORS if (row, column) not in DOORS
)


class Errand(NamedTuple):
    """The agent's cell, the keys not taken yet, and whether it carries one."""

    cell: Cell
    lying: frozenset[str]
    carrying: bool
    event: str = ""

    @property
    def opened(self) -> int:
        """The number of open doors: each took a key."""
        return 2 - len(self.lying) - self.carrying


class TwoKeysRules:
    """The rules of the two-keys world; see `TwoKeys`."""

    actions = tuple(MOVES)

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.keys = keys

    def starts(self) -> Sequence[Errand]:
        """Begin in the hallway with an empty hand."""
        return [Errand(START, frozenset(self.keys), False)]

    def step(self, state: Errand, action: int) -> tuple[Errand, float, bool]:
        """Move; a closed door takes the key, an empty hand takes up a key."""
        cell = moved(state.cell, MOVES[self.actions[action]])
        if cell in _INNER_WALLS:
            cell = state.cell
        if cell in DOORS[state.opened :]:
            if state.carrying:
                return Errand(cell, state.lying, False, "door"), 0.0, False
            cell = state.cell
        for corner in state.lying:
            if cell == CORNERS[corner] and not state.carrying:
                return Errand(cell, state.lying - {corner}, True, f"{corner} key"), 0.0, False
        reached = cell == GOAL
        event = "goal" if reached else ""
        return Errand(cell, state.lying, state.carrying, event), float(reached), reached

    def observation(self, state: Errand) -> str:
        """Show the cell, the hand, keys in the same room, and the doors from the east room."""
        seen = ["key in hand"] if state.carrying else []
        seen += [f"{side(key)} key" for key in self.keys if self._sees(state, key)]
        if room_of(state.cell) == "east":
            seen += ["first door closed", "second door closed"][state.opened :]
        return view(state.cell, seen)

    def _sees(self, state: Errand, key: str) -> bool:
        return key in state.lying and seen_from(state.cell, key)

    def label(self, state: Errand) -> Label:
        """Return the last event."""
        return frozenset({state.event}) if state.event else NO_EVENT

    def transition_memory(self, state: Errand) -> frozenset[str]:
        """The keys not taken yet, which with the hand also determine the doors."""
        return state.lying

    def reward_memory(self, state: Errand) -> int:
        """Nothing: the goal always pays."""
        return 0


class Noted(NamedTuple):
    """An errand, and the observed numbers of keys in the north and south.

    `lying` is None until one of both rooms was entered; then the other number follows.
    """

    errand: Errand
    lying: tuple[int, int] | None = None
    has_changed: bool = False


class PublishedTwoKeysRules:
    """The rules of the published two-keys world; see `TwoKeys`."""

    actions = tuple(MOVES)

    def __init__(self) -> None:
        self._rules = TwoKeysRules(tuple(CORNERS))

    def starts(self) -> Sequence[Noted]:
        """Begin with both keys in the north, both in the south, or one in each: equally likely."""
        north, south = ([key for key in CORNERS if key.startswith(room)] for room in _KEY_ROOMS)
        apart = [(north_key, south_key) for north_key in north for south_key in south]
        # As often as there are ways to have one in each, so that all three are equally likely.
        pairs = [tuple(north)] * len(apart) + apart + [tuple(south)] * len(apart)
        return [Noted(Errand(START, frozenset(pair), False)) for pair in pairs]

    def step(self, state: Noted, action: int) -> tuple[Noted, float, bool]:
        """Step as the two-keys world does, and note the keys seen in rooms."""
        errand, reward, ended = self._rules.step(state.errand, action)
        counts = state.lying
        if counts is not None or room_of(errand.cell) in _KEY_ROOMS:
            north, south = (_keys_in(errand, room) for room in _KEY_ROOMS)
            counts = north, south
        changed = self._detected(errand) != self._detected(state.errand)
        return Noted(errand._replace(event=""), counts, changed), reward, ended

    def observation(self, state: Noted) -> str:
        """Show the cell, the hand, keys in the same room, and the doors from the east room."""
        return self._rules.observation(state.errand)

    def _detected(self, errand: Errand) -> Label:
        """Return the output of the published detectors at this step."""
        room = room_of(errand.cell)
        names = {room, "goal"} if errand.cell == GOAL else {room}
        if errand.carrying:
            names.add("key in hand")
        if room in _KEY_ROOMS and (keys := _keys_in(errand, room)):
            names.add(("one key", "two keys")[keys - 1])
        if room == "east" and (closed := len(DOORS) - errand.opened):
            names.add(("one door", "two doors")[closed - 1])
        return frozenset(names)

    def label(self, state: Noted) -> Label:
        """Return the room and its detected contents whenever they change."""
        return self._detected(state.errand) if state.has_changed else NO_EVENT

    def transition_memory(self, state: Noted) -> tuple[int, int] | None:
        """The number of keys in each room, as far as known."""
        return state.lying

    def reward_memory(self, state: Noted) -> int:
        """Nothing: the goal always pays."""
        return 0


def _keys_in(errand: Errand, room: str) -> int:
    return sum(key.startswith(room) for key in errand.lying)


class TwoKeys(World):
    """Fetch two keys, one at a time, to open two doors in a row and reach the goal.

    The keys lie in two of four corners, `keys`, of the rooms north and south of a
    hallway. An agent with an empty hand takes up a key where it passes one; the key opens
    the next door and is gone. The goal pays 1 and ends the episode. The agent sees its
    cell, whether it carries a key, keys in the same room, and from the east room
    which doors are closed. Taking up a key, opening a door and reaching the goal
    are its events. `gym.make` cuts episodes after 5,000 steps.

    Memory: 4 TM states, for the keys not taken yet, which are no longer observed
    once the agent has left the room; with the observed hand, they also determine the
    doors. One RM state, since the goal always pays.

    With `published=True` chance places the keys, both in the north, both in the south or
    one in each, and labels are as published: the room and its detected contents, whenever
    they change. Then there are 7 TM states: the number of keys in each room, or that
    neither has been seen yet. The published world also has `slip=0.05`.

    >>> machines = TwoKeys().machines()
    >>> machines.transition.states, machines.reward.states
    (4, 1)
    >>> TwoKeys(published=True, slip=0.05).machines().transition.states
    7
    """

    def __init__(
        self,
        keys: Sequence[str] = ("north-west", "south-east"),
        *,
        published: bool = False,
        slip: float = 0.0,
        render_mode: str | None = None,
    ) -> None:
        corners = tuple(keys)
        if len(set(corners)) != 2 or len(corners) != 2 or not set(corners) <= set(CORNERS):
            raise OptionError(f"keys={shown(keys)}: name two of {', '.join(CORNERS)}")
        self.keys = corners
        self.published = published
        mechanics = (
            Mechanics.explore(PublishedTwoKeysRules(), uncertain=True)
            if published
            else Mechanics.explore(TwoKeysRules(corners))
        )
        super().__init__(mechanics, render_mode, slip=slip)

    def picture(self, state: int) -> Picture:
        """Draw the house, with all keys and doors."""
        true_state: Errand | Noted = self.mechanics.true_states[state]
        now = true_state.errand if isinstance(true_state, Noted) else true_state
        things = {GOAL: "goal", **{CORNERS[key]: "key" for key in now.lying}}
        for number, door in enumerate(DOORS):
            things[door] = "open door" if number < now.opened else "closed door"
        hand = "a key" if now.carrying else "nothing"
        return Picture(
            ROWS,
            COLUMNS,
            now.cell,
            things,
            {"key": "K", "closed door": "D", "open door": "O", "goal": "G"},
            solid=WALLS | _INNER_WALLS,
            captions=(f"in hand: {hand}",),
        )
