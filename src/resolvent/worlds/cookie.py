"""The cookie world: a distant button decides where a cookie appears."""

from collections.abc import Sequence
from typing import NamedTuple

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

BUTTON: Cell = (8, 13)

_ORDER = tuple(CORNERS)


class CookieState(NamedTuple):
    """The agent's cell, the corner of the last cookie, and whether it still lies there.

    `left` is the number of cookies until the episode ends, if it does.
    """

    cell: Cell
    corner: str
    is_there: bool
    left: int | None
    event: str = ""


class CookieRules(Rules[CookieState]):
    """The rules of the cookie world; see `Cookie`."""

    actions = ACTIONS

    def __init__(self, cookies: int | None) -> None:
        self.cookies = cookies

    def starts(self) -> Sequence[CookieState]:
        """Begin in the hallway, without a cookie."""
        return [CookieState(START, _ORDER[-1], False, self.cookies)]

    def step(self, state: CookieState, action: int) -> tuple[CookieState, float, bool]:
        """Move; being on the button puts out the next cookie, reaching a cookie eats it."""
        cell = next_cell(state.cell, action)
        if cell == BUTTON:
            corner = _ORDER[(_ORDER.index(state.corner) + 1) % len(_ORDER)]
            return CookieState(cell, corner, True, state.left, "button"), 0.0, False
        if not state.is_there or cell != CORNERS[state.corner]:
            return state._replace(cell=cell, event=""), 0.0, False
        left = None if state.left is None else state.left - 1
        return CookieState(cell, state.corner, False, left, "cookie"), 1.0, left == 0

    def observation(self, state: CookieState) -> str:
        """Show the cell, a cookie in the same room, and the number left to eat."""
        seen = []
        if state.is_there and seen_from(state.cell, state.corner):
            seen.append(f"{side(state.corner)} cookie")
        if state.left is not None:
            seen.append(f"{state.left} left")
        return view(state.cell, seen)

    def label(self, state: CookieState) -> Label:
        """Return the last event."""
        return frozenset({state.event}) if state.event else NO_EVENT

    def transition_memory(self, state: CookieState) -> tuple[str, bool]:
        """Return the corner of the last cookie, and whether it is still there."""
        return state.corner, state.is_there


class PublishedCookieState(NamedTuple):
    """The agent's cell, the cookie's corner, and the rooms that may hold it given all observations.

    `rooms` is "" if there is no cookie, and "north or south" after a press.
    """

    cell: Cell
    corner: str = ""
    rooms: str = ""
    event: str = ""
    has_changed: bool = False


class PublishedCookieRules(Rules[PublishedCookieState]):
    """The rules of the published cookie world; see `Cookie`."""

    actions = ACTIONS

    def starts(self) -> Sequence[PublishedCookieState]:
        """Begin in the hallway, without a cookie."""
        return [PublishedCookieState(START)]

    def step(
        self, state: PublishedCookieState, action: int
    ) -> tuple[PublishedCookieState, float, bool]:
        """Move; being on the button puts a cookie in any corner, reaching a cookie eats it."""
        action, outcome = divmod(action, len(CORNERS))
        cell = next_cell(state.cell, action)
        corner, rooms, event = state.corner, state.rooms, ""
        if cell == BUTTON:
            corner, rooms, event = _ORDER[outcome], "north or south", "button"
        elif corner and cell == CORNERS[corner]:
            corner, rooms, event = "", "", "cookie eaten"
        elif rooms and ROOM_OF[cell] in ("north", "south"):
            rooms = corner.split("-")[0]
        after = PublishedCookieState(cell, corner, rooms, event)
        changed = self._detected(after) != self._detected(state)
        return after._replace(has_changed=changed), float(event == "cookie eaten"), False

    def observation(self, state: PublishedCookieState) -> str:
        """Show the cell, and a cookie in the same room."""
        return view(state.cell, [f"{side(state.corner)} cookie"] if self._sees(state) else [])

    def _sees(self, state: PublishedCookieState) -> bool:
        return state.corner != "" and seen_from(state.cell, state.corner)

    def _detected(self, state: PublishedCookieState) -> Label:
        """Return the output of the published detectors at this step."""
        seen = {"cookie"} if self._sees(state) else set()
        return frozenset({ROOM_OF[state.cell]} | seen | ({state.event} if state.event else set()))

    def label(self, state: PublishedCookieState) -> Label:
        """Return the room and its detected contents whenever they change."""
        return self._detected(state) if state.has_changed else NO_EVENT

    def transition_memory(self, state: PublishedCookieState) -> str:
        """Return the rooms that may hold a cookie."""
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

    With `published=True` the corner is random, and labels are as published: the
    room and its detected contents, whenever they change. Then there are 4 TM states: no
    cookie, one in either room, one in the north, one in the south. The published world
    also has `slip=0.05`.

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
        if cookies is not None and cookies < 1:
            raise OptionError(f"cookies={cookies}: end after at least one, or None for never")
        if published and cookies is not None:
            raise OptionError(f"cookies={cookies}: the published world never ends, so omit it")
        self.cookies = cookies
        self.published = published
        mechanics = (
            Mechanics.explore(PublishedCookieRules(), chances=len(CORNERS))
            if published
            else Mechanics.explore(CookieRules(cookies))
        )
        super().__init__(mechanics, render_mode, slip=slip)

    def picture(self, state: int) -> Picture:
        """Draw the house, with the cookie wherever it lies."""
        now: CookieState | PublishedCookieState = self.mechanics.true_states[state]
        if isinstance(now, PublishedCookieState):
            now = CookieState(now.cell, now.corner, now.corner != "", None)
        things = {BUTTON: "button"}
        if now.is_there:
            things[CORNERS[now.corner]] = "cookie"
        caption = f"cookie: {now.corner}" if now.is_there else "no cookie"
        left = () if now.left is None else (f"{now.left} left to eat",)
        return draw_house(now.cell, things, {"button": "B", "cookie": "C"}, (caption, *left))
