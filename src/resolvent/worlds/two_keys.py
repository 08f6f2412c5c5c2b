"""The two-keys world: two doors, a key for each, and one hand to carry them."""

from collections.abc import Sequence
from typing import NamedTuple

from resolvent._util.validation import quoted
from resolvent.errors import OptionError
from resolvent.traces.symbols import NO_EVENT, Label
from resolvent.worlds.drawing import Cell, Picture
from resolvent.worlds.env import World
from resolvent.worlds.lrm_house import (
    ACTIONS,
    CORNERS,
    ROOM_OF,
    START,
    draw_house,
    next_cell,
    seen_from,
    side,
    view,
)
from resolvent.worlds.mechanics import Mechanics, Rules

DOORS: tuple[Cell, Cell] = ((8, 9), (8, 11))
GOAL: Cell = (6, 13)

_KEY_ROOMS = ("north", "south")

_INNER_WALLS = frozenset(
    (row, column) for row in range(6, 11) for _, column in DOORS if (row, column) not in DOORS
)


class KeysState(NamedTuple):
    """The agent's cell, the corners of keys that were not taken, and whether it carries one."""

    cell: Cell
    keys_left: frozenset[str]
    has_key: bool
    event: str = ""

    @property
    def n_open(self) -> int:
        """The number of open doors: each took a key."""
        return 2 - len(self.keys_left) - self.has_key


class TwoKeysRules(Rules[KeysState]):
    """The rules of the two-keys world; see `TwoKeys`."""

    actions = ACTIONS

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.keys = keys

    def starts(self) -> Sequence[KeysState]:
        """Begin in the hallway with an empty hand."""
        return [KeysState(START, frozenset(self.keys), False)]

    def step(self, state: KeysState, action: int) -> tuple[KeysState, float, bool]:
        """Move; a closed door takes the key, an empty hand takes up a key."""
        cell = next_cell(state.cell, action)
        if cell in _INNER_WALLS:
            cell = state.cell
        if cell in DOORS[state.n_open :]:
            if state.has_key:
                return KeysState(cell, state.keys_left, False, "door"), 0.0, False
            cell = state.cell
        for corner in state.keys_left:
            if cell == CORNERS[corner] and not state.has_key:
                keys_left = state.keys_left - {corner}
                return KeysState(cell, keys_left, True, f"{corner} key"), 0.0, False
        reached = cell == GOAL
        event = "goal" if reached else ""
        return KeysState(cell, state.keys_left, state.has_key, event), float(reached), reached

    def observation(self, state: KeysState) -> str:
        """Show the cell, the hand, keys in the same room, and the doors from the east room."""
        seen = ["key in hand"] if state.has_key else []
        seen += [
            f"{side(key)} key"
            for key in self.keys
            if key in state.keys_left and seen_from(state.cell, key)
        ]
        if ROOM_OF[state.cell] == "east":
            seen += ["first door closed", "second door closed"][state.n_open :]
        return view(state.cell, seen)

    def label(self, state: KeysState) -> Label:
        """Return the last event."""
        return frozenset({state.event}) if state.event else NO_EVENT

    def transition_memory(self, state: KeysState) -> frozenset[str]:
        """Return the keys that were not taken; with the hand they also determine the doors."""
        return state.keys_left


class PublishedKeysState(NamedTuple):
    """A state of the two-keys world, and the observed numbers of keys in the north and south.

    `counts` is None until one of both rooms was entered; then the other number follows.
    """

    true: KeysState
    counts: tuple[int, int] | None = None
    has_changed: bool = False


class PublishedTwoKeysRules(Rules[PublishedKeysState]):
    """The rules of the published two-keys world; see `TwoKeys`."""

    actions = ACTIONS

    def __init__(self) -> None:
        self._rules = TwoKeysRules(tuple(CORNERS))

    def starts(self) -> Sequence[PublishedKeysState]:
        """Begin with both keys in the north, both in the south, or one in each: equally likely."""
        north, south = ([key for key in CORNERS if key.startswith(room)] for room in _KEY_ROOMS)
        apart = [(north_key, south_key) for north_key in north for south_key in south]
        # Repeated as often as there are pairs with one in each.
        pairs = [tuple(north)] * len(apart) + apart + [tuple(south)] * len(apart)
        return [PublishedKeysState(KeysState(START, frozenset(pair), False)) for pair in pairs]

    def step(
        self, state: PublishedKeysState, action: int
    ) -> tuple[PublishedKeysState, float, bool]:
        """Step as the two-keys world does, and remember the numbers of keys in rooms."""
        true, reward, ended = self._rules.step(state.true, action)
        counts = state.counts
        if counts is not None or ROOM_OF[true.cell] in _KEY_ROOMS:
            north, south = (_keys_in(true, room) for room in _KEY_ROOMS)
            counts = north, south
        changed = self._detected(true) != self._detected(state.true)
        return PublishedKeysState(true._replace(event=""), counts, changed), reward, ended

    def observation(self, state: PublishedKeysState) -> str:
        """Show the cell, the hand, keys in the same room, and the doors from the east room."""
        return self._rules.observation(state.true)

    def _detected(self, state: KeysState) -> Label:
        """Return the output of the published detectors at this step."""
        room = ROOM_OF[state.cell]
        names = {room, "goal"} if state.cell == GOAL else {room}
        if state.has_key:
            names.add("key in hand")
        if room in _KEY_ROOMS and (keys := _keys_in(state, room)):
            names.add(("one key", "two keys")[keys - 1])
        if room == "east" and (closed := len(DOORS) - state.n_open):
            names.add(("one door", "two doors")[closed - 1])
        return frozenset(names)

    def label(self, state: PublishedKeysState) -> Label:
        """Return the room and its detected contents whenever they change."""
        return self._detected(state.true) if state.has_changed else NO_EVENT

    def transition_memory(self, state: PublishedKeysState) -> tuple[int, int] | None:
        """Return the number of keys in each room, as far as known."""
        return state.counts


def _keys_in(state: KeysState, room: str) -> int:
    return sum(key.startswith(room) for key in state.keys_left)


class TwoKeys(World):
    """Fetch two keys, one at a time, to open two doors in a row and reach the goal.

    The keys lie in two of four corners, `keys`, of the rooms north and south of a
    hallway. An agent with an empty hand takes up a key on its cell; the key opens
    the next door and is gone. The goal ends the episode with reward 1. The agent sees its
    cell, whether it carries a key, keys in the same room, and from the east room
    which doors are closed. Taking up a key, opening a door and reaching the goal
    are the events. `gym.make` truncates episodes after 5,000 steps.

    Memory: 4 TM states, for the keys not taken yet, which are no longer observed
    once the agent has left the room; with the observed hand, they also determine the
    doors. One RM state, since the goal always gives the reward.

    With `published=True` the keys are placed at random, both in the north, both in the south
    or one in each, and labels are as published: the room and its detected contents, whenever
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
            raise OptionError(f"keys={quoted(keys)}: name two of {', '.join(CORNERS)}")
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
        now: KeysState | PublishedKeysState = self.mechanics.true_states[state]
        if isinstance(now, PublishedKeysState):
            now = now.true
        things = {GOAL: "goal", **{CORNERS[key]: "key" for key in now.keys_left}}
        for number, door in enumerate(DOORS):
            things[door] = "open door" if number < now.n_open else "closed door"
        legend = {"key": "K", "closed door": "D", "open door": "O", "goal": "G"}
        caption = f"in hand: {'a key' if now.has_key else 'nothing'}"
        return draw_house(now.cell, things, legend, (caption,), inner_walls=_INNER_WALLS)
