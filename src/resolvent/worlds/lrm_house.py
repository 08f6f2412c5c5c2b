"""The cookie, two-keys and symbol worlds: three rooms and a hallway.

Toro Icarte, Waldie, Klassen, Valenzano, Castro and McIlraith, "Learning Reward Machines for
Partially Observable Reinforcement Learning" (2019). There a step slips with probability 5%, to one
of the other three directions, and objects are placed at random; here only if arguments say so.
"""

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from functools import partial
from itertools import product
from typing import Any, Final, NamedTuple

from resolvent._util.validation import check_at_least, quoted
from resolvent.errors import OptionError
from resolvent.traces.symbols import NO_EVENT, Label
from resolvent.worlds.drawing import Cell, Picture
from resolvent.worlds.env import VectorWorld, World
from resolvent.worlds.mechanics import Mechanics, Rules

ROWS, COLUMNS = 17, 15
START: Final[Cell] = (8, 2)
CORNERS: Final[dict[str, Cell]] = {
    "north-west": (1, 1),
    "north-east": (1, 3),
    "south-west": (15, 1),
    "south-east": (15, 3),
}
"""The corners of the two small rooms, where cookies and keys lie."""

_DIRECTIONS: Final = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}
ACTIONS: Final = tuple(_DIRECTIONS)

_ROOMS = {
    "north": set(product(range(1, 4), range(1, 4))),
    "south": set(product(range(13, 16), range(1, 4))),
    "east": set(product(range(6, 11), range(8, 14))),
    "hallway": {(row, 2) for row in range(4, 13)} | {(8, column) for column in range(3, 8)},
}
ROOM_OF: Final = {cell: room for room, cells in _ROOMS.items() for cell in cells}
"""The room that each cell belongs to: north, south, east or hallway."""

_WALLS: Final = frozenset(product(range(ROWS), range(COLUMNS))) - ROOM_OF.keys()


class _EventRules(Rules[Any]):
    """Rules whose labels are the event of the last step, if there was one."""

    actions = ACTIONS

    def label(self, state: Any) -> Label:
        return frozenset({state.event} - {""})


class _DetectorRules(Rules[Any]):
    """Rules with the published labels: the room and its contents, whenever they change."""

    actions = ACTIONS

    @abstractmethod
    def move(self, state: Any, action: int) -> tuple[Any, float, bool]:
        """Return the next state, the reward, and whether the episode ends."""

    @abstractmethod
    def detected(self, state: Any) -> Label:
        """Return the output of the published detectors."""

    def step(self, state: Any, action: int) -> tuple[Any, float, bool]:
        after, reward, ended = self.move(state, action)
        changed = self.detected(after) != self.detected(state)
        return after._replace(has_changed=changed), reward, ended

    def label(self, state: Any) -> Label:
        return self.detected(state) if state.has_changed else NO_EVENT


def _seen_from(cell: Cell, corner: str) -> bool:
    return ROOM_OF[cell] == ROOM_OF[CORNERS[corner]]


def _view(cell: Cell, objects: Sequence[str]) -> str:
    """Return the observation of a cell and of the objects visible from there."""
    position = f"{cell[0]},{cell[1]}"
    return f"{position}: {', '.join(objects)}" if objects else position


def _named(corner: str, thing: str) -> str:
    """Name a thing by the side of its room, west or east."""
    return f"{corner.split('-')[1]} {thing}"


def _next_cell(cell: Cell, action: int) -> Cell:
    """Return the neighboring cell, or the same one at a wall."""
    down, right = _DIRECTIONS[ACTIONS[action]]
    target = cell[0] + down, cell[1] + right
    return target if target in ROOM_OF else cell


_draw = partial(Picture, ROWS, COLUMNS, solid=_WALLS)


# --- Cookies -------------------------------------------------------------------------------------

BUTTON: Cell = (8, 13)
_ORDER = tuple(CORNERS)


class _CookieState(NamedTuple):
    """The agent's cell, the corner of the last cookie, and the rooms where it may lie now."""

    cell: Cell
    corner: str = ""
    rooms: str = ""  # by all observations; empty without a cookie
    left: int | None = None  # cookies until the episode ends
    event: str = ""
    has_changed: bool = False


class _CookieRules(_EventRules):
    def __init__(self, cookies: int | None) -> None:
        self.cookies = cookies

    def starts(self) -> Sequence[_CookieState]:
        return [_CookieState(START, _ORDER[-1], left=self.cookies)]

    def step(self, state: _CookieState, action: int) -> tuple[_CookieState, float, bool]:
        cell = _next_cell(state.cell, action)
        if cell == BUTTON:
            corner = _ORDER[(_ORDER.index(state.corner) + 1) % len(_ORDER)]
            return _CookieState(cell, corner, "any", state.left, "button"), 0.0, False
        if not state.rooms or cell != CORNERS[state.corner]:
            return state._replace(cell=cell, event=""), 0.0, False
        left = None if state.left is None else state.left - 1
        return _CookieState(cell, state.corner, "", left, "cookie"), 1.0, left == 0

    def observation(self, state: _CookieState) -> str:
        seen = [_named(state.corner, "cookie")] if self.sees_cookie(state) else []
        if state.left is not None:
            seen.append(f"{state.left} left")
        return _view(state.cell, seen)

    def sees_cookie(self, state: _CookieState) -> bool:
        return state.rooms != "" and _seen_from(state.cell, state.corner)

    def transition_memory(self, state: _CookieState) -> Hashable:
        return state.corner, state.rooms


class _PublishedCookieRules(_DetectorRules, _CookieRules):
    def starts(self) -> Sequence[_CookieState]:
        return [_CookieState(START)]

    def move(self, state: _CookieState, action: int) -> tuple[_CookieState, float, bool]:
        action, outcome = divmod(action, len(CORNERS))
        cell = _next_cell(state.cell, action)
        corner, rooms, event = state.corner, state.rooms, ""
        if cell == BUTTON:
            corner, rooms, event = _ORDER[outcome], "north or south", "button"
        elif corner and cell == CORNERS[corner]:
            corner, rooms, event = "", "", "cookie eaten"
        elif rooms and ROOM_OF[cell] in ("north", "south"):
            rooms = corner.split("-")[0]
        after = _CookieState(cell, corner, rooms, event=event)
        return after, float(event == "cookie eaten"), False

    def detected(self, state: _CookieState) -> Label:
        cookie = "cookie" if self.sees_cookie(state) else ""
        return frozenset({ROOM_OF[state.cell], state.event, cookie} - {""})

    def transition_memory(self, state: _CookieState) -> str:
        return state.rooms


class Cookie(World):
    """Press the button, find the cookie, eat it, and go back for the next one.

    Each step that ends on the button removes the cookie, if any, and puts the next one
    in the next of four corners: north-west, north-east, south-west, south-east, and so
    on. The reward for eating it is 1. The agent sees its cell, and a cookie only from within
    the same room; pressing and eating are the two events.

    The world has no end, so `gym.make` truncates episodes after 5,000 steps. With `cookies=N`
    the episode ends with the Nth; then the agent also sees the number left, since
    otherwise no memory would predict the end.

    Memory: 8 TM states, the corner of the last cookie and whether it has been
    eaten (5 with `cookies=1`); one RM state, since a cookie that can be eaten is visible.

    With `published=True` the corner is random, and labels are as published: the room and its
    detected contents, whenever they change. Then there are 4 TM states: no cookie, one in either
    room, one in the north, one in the south. The published world also has `slip=0.05`.

    >>> machines = Cookie().machines()
    >>> machines.transition.states, machines.reward.states
    (8, 1)
    >>> Cookie(published=True, slip=0.05).machines().transition.states
    4
    """

    def __init__(
        self,
        cookies: int | None = None,
        *,
        published: bool = False,
        slip: float = 0.0,
        render_mode: str | None = None,
    ) -> None:
        check_at_least(1, cookies=cookies)
        if published and cookies is not None:
            raise OptionError(f"cookies={cookies}: the published world never ends, so omit it")
        rules = (_PublishedCookieRules if published else _CookieRules)(cookies)
        mechanics = Mechanics.explore(rules, chances=len(CORNERS) if published else 1)
        super().__init__(mechanics, render_mode, slip=slip)

    def picture(self, state: int) -> Picture:
        """Draw the house, with the cookie wherever it lies."""
        now: _CookieState = self.mechanics.true_states[state]
        things = {BUTTON: "button"}
        captions = [f"cookie: {now.corner}" if now.rooms else "no cookie"]
        if now.rooms:
            things[CORNERS[now.corner]] = "cookie"
        if now.left is not None:
            captions.append(f"{now.left} left to eat")
        return _draw(now.cell, things, {"button": "B", "cookie": "C"}, captions=tuple(captions))


# --- Two keys ------------------------------------------------------------------------------------

DOORS: tuple[Cell, Cell] = ((8, 9), (8, 11))
GOAL: Cell = (6, 13)
_KEY_ROOMS = ("north", "south")

_INNER_WALLS = frozenset(
    (row, column) for row in range(6, 11) for _, column in DOORS if (row, column) not in DOORS
)


class _KeysState(NamedTuple):
    """The agent's cell, the corners of keys that were not taken, and whether it carries one."""

    cell: Cell
    keys_left: frozenset[str]
    has_key: bool = False
    event: str = ""
    counts: tuple[int, int] | None = None  # published: of observed keys in the north and south
    has_changed: bool = False

    @property
    def n_open(self) -> int:
        """The number of open doors: each took a key."""
        return 2 - len(self.keys_left) - self.has_key

    def keys_in(self, room: str) -> int:
        """Return the number of keys in a room."""
        return sum(key.startswith(room) for key in self.keys_left)


class _TwoKeysRules(_EventRules):
    def __init__(self, keys: tuple[str, ...]) -> None:
        self.keys = keys

    def starts(self) -> Sequence[_KeysState]:
        return [_KeysState(START, frozenset(self.keys))]

    def step(self, state: _KeysState, action: int) -> tuple[_KeysState, float, bool]:
        cell = _next_cell(state.cell, action)
        closed = DOORS[state.n_open :]
        if cell in closed and state.has_key:
            return state._replace(cell=cell, has_key=False, event="door"), 0.0, False
        if cell in _INNER_WALLS or cell in closed:
            cell = state.cell
        for corner in state.keys_left:
            if cell == CORNERS[corner] and not state.has_key:
                after = state._replace(cell=cell, has_key=True, event=f"{corner} key")
                return after._replace(keys_left=state.keys_left - {corner}), 0.0, False
        reached = cell == GOAL
        event = "goal" if reached else ""
        return state._replace(cell=cell, event=event), float(reached), reached

    def observation(self, state: _KeysState) -> str:
        """Show the cell, the hand, keys in the same room, and the doors from the east room."""
        seen = ["key in hand"] if state.has_key else []
        here = [key for key in self.keys if key in state.keys_left and _seen_from(state.cell, key)]
        seen += [_named(key, "key") for key in here]
        if ROOM_OF[state.cell] == "east":
            seen += ["first door closed", "second door closed"][state.n_open :]
        return _view(state.cell, seen)

    def transition_memory(self, state: _KeysState) -> Hashable:
        return state.keys_left  # with the hand, which is observed, they also determine the doors


class _PublishedTwoKeysRules(_DetectorRules, _TwoKeysRules):
    def starts(self) -> Sequence[_KeysState]:
        """Begin with both keys in the north, both in the south, or one in each: equally likely."""
        north, south = ([key for key in CORNERS if key.startswith(room)] for room in _KEY_ROOMS)
        apart = list(product(north, south))
        # Repeated as often as there are pairs with one in each.
        pairs = [tuple(north)] * len(apart) + apart + [tuple(south)] * len(apart)
        return [_KeysState(START, frozenset(pair)) for pair in pairs]

    def move(self, state: _KeysState, action: int) -> tuple[_KeysState, float, bool]:
        after, reward, ended = _TwoKeysRules.step(self, state, action)
        counts = state.counts
        if counts is not None or ROOM_OF[after.cell] in _KEY_ROOMS:
            counts = after.keys_in("north"), after.keys_in("south")
        return after._replace(event="", counts=counts), reward, ended

    def detected(self, state: _KeysState) -> Label:
        room = ROOM_OF[state.cell]
        names = {room, "goal"} if state.cell == GOAL else {room}
        if state.has_key:
            names.add("key in hand")
        if room in _KEY_ROOMS and (keys := state.keys_in(room)):
            names.add(("one key", "two keys")[keys - 1])
        if room == "east" and (closed := len(DOORS) - state.n_open):
            names.add(("one door", "two doors")[closed - 1])
        return frozenset(names)

    def transition_memory(self, state: _KeysState) -> tuple[int, int] | None:
        return state.counts


class TwoKeys(World):
    """Fetch two keys, one at a time, to open two doors in a row and reach the goal.

    The keys lie in two of four corners, `keys`, of the rooms north and south of a hallway. An agent
    with an empty hand takes up a key on its cell; the key opens the next door and is gone. The goal
    ends the episode with reward 1. The agent sees its cell, whether it carries a key, keys in the
    same room, and from the east room which doors are closed. Taking up a key, opening a door and
    reaching the goal are the events. `gym.make` truncates episodes after 5,000 steps.

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
        rules = _PublishedTwoKeysRules(tuple(CORNERS)) if published else _TwoKeysRules(corners)
        mechanics = Mechanics.explore(rules, uncertain=published)
        super().__init__(mechanics, render_mode, slip=slip)

    def picture(self, state: int) -> Picture:
        """Draw the house, with all keys and doors."""
        now: _KeysState = self.mechanics.true_states[state]
        things = {GOAL: "goal", **{CORNERS[key]: "key" for key in now.keys_left}}
        for number, door in enumerate(DOORS):
            things[door] = "open door" if number < now.n_open else "closed door"
        legend = {"key": "K", "closed door": "D", "open door": "O", "goal": "G"}
        caption = f"in hand: {'a key' if now.has_key else 'nothing'}"
        return _draw(now.cell, things, legend, captions=(caption,), solid=_WALLS | _INNER_WALLS)


# --- Symbols -------------------------------------------------------------------------------------

SYMBOLS: Final = ("club", "diamond", "spade")
ARROWS: Final[dict[str, tuple[str, ...]]] = {
    "go north": ("north",),
    "go south": ("south",),
    "go anywhere": ("north", "south"),
}
"""The directions of the sign, with the rooms whose symbol then gives the reward."""

_SYMBOL_AT: Final = {
    (row, column): symbol for row in (1, 15) for column, symbol in enumerate(SYMBOLS, start=1)
}


class _SearchState(NamedTuple):
    cell: Cell
    symbol: str
    arrow: str
    has_read: bool = False
    has_changed: bool = False


class _SymbolRules(_DetectorRules):
    def starts(self) -> Sequence[_SearchState]:
        return [_SearchState(START, symbol, arrow) for symbol, arrow in product(SYMBOLS, ARROWS)]

    def move(self, state: _SearchState, action: int) -> tuple[_SearchState, float, bool]:
        cell = _next_cell(state.cell, action)
        has_read = state.has_read or ROOM_OF[cell] == "east"
        after = state._replace(cell=cell, has_read=has_read)
        if cell not in _SYMBOL_AT:
            return after, 0.0, False
        right = _SYMBOL_AT[cell] == state.symbol and ROOM_OF[cell] in ARROWS[state.arrow]
        return after, 1.0 if right else -1.0, True

    def observation(self, state: _SearchState) -> str:
        in_sight = ROOM_OF[state.cell] == "east"
        return _view(state.cell, [state.symbol, state.arrow] if in_sight else [])

    def detected(self, state: _SearchState) -> Label:
        room = ROOM_OF[state.cell]
        if room == "east":
            return frozenset({room, state.symbol, state.arrow})
        reached = _SYMBOL_AT.get(state.cell)
        return frozenset({room} if reached is None else {room, f"{reached} reached"})

    def transition_memory(self, state: _SearchState) -> tuple[str, ...]:
        return (state.symbol, state.arrow) if state.has_read else ()


class Symbol(World):
    """Read a sign, remember it, and walk to the symbol that it names.

    A club, a diamond and a spade lie in the room north of a hallway, and again in the
    room south of it. A sign in the east room names one of them, and the direction: north,
    south or anywhere. Reaching the right one gives the reward 1, any other −1; either ends the
    episode. The agent sees its cell, and the sign from within its room. Labels are
    the room and its detected contents, whenever they change. The text of the sign is
    drawn for each episode. `gym.make` truncates episodes after 5,000 steps.

    Memory: 10 TM states, nothing read yet or one of nine signs; one RM state, as it is
    supplemented with the TM's. The text of an unread sign, and the reward of a symbol before
    it was read, are random: there the machines give one of several equally likely outputs.

    >>> machines = Symbol(slip=0.05).machines()
    >>> machines.transition.states, machines.reward.states
    (10, 1)
    """

    def __init__(self, *, slip: float = 0.0, render_mode: str | None = None) -> None:
        super().__init__(Mechanics.explore(_SymbolRules(), uncertain=True), render_mode, slip=slip)

    def picture(self, state: int) -> Picture:
        """Draw the house, with the symbols and the text of the sign."""
        now: _SearchState = self.mechanics.true_states[state]
        legend = {"club": "C", "diamond": "D", "spade": "S"}
        is_read = "read" if now.has_read else "not read"
        caption = f"the sign, {is_read}: {now.symbol}, {now.arrow}"
        return _draw(now.cell, _SYMBOL_AT, legend, captions=(caption,))


VectorCookie = VectorWorld.of(Cookie)
VectorTwoKeys = VectorWorld.of(TwoKeys)
VectorSymbol = VectorWorld.of(Symbol)
