"""The cookie world: a distant button decides in which corner a cookie appears."""

from collections.abc import Sequence
from typing import NamedTuple

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

BUTTON: Cell = (8, 13)

_ORDER = tuple(CORNERS)


class Baked(NamedTuple):
    """Where the agent is, where the last cookie was put, and whether it still lies there."""

    cell: Cell
    corner: str
    lies: bool
    left: int | None
    event: str = ""


class CookieRules:
    """The rules of the cookie world; see `Cookie`."""

    actions = tuple(MOVES)

    def __init__(self, cookies: int | None) -> None:
        self.cookies = cookies

    def starts(self) -> Sequence[Baked]:
        """Begin in the hallway, without a cookie."""
        return [Baked(START, _ORDER[-1], False, self.cookies)]

    def step(self, state: Baked, action: int) -> tuple[Baked, float, bool]:
        """Move; being on the button puts out the next cookie, reaching a cookie eats it."""
        cell = moved(state.cell, MOVES[self.actions[action]])
        if cell == BUTTON:
            corner = _ORDER[(_ORDER.index(state.corner) + 1) % len(_ORDER)]
            return Baked(cell, corner, True, state.left, "button"), 0.0, False
        if not state.lies or cell != CORNERS[state.corner]:
            return state._replace(cell=cell, event=""), 0.0, False
        left = None if state.left is None else state.left - 1
        return Baked(cell, state.corner, False, left, "cookie"), 1.0, left == 0

    def observation(self, state: Baked) -> str:
        """Show the cell, a cookie in the same room, and the number left to eat."""
        seen = []
        if state.lies and seen_from(state.cell, state.corner):
            seen.append(f"{side(state.corner)} cookie")
        if state.left is not None:
            seen.append(f"{state.left} left")
        return view(state.cell, seen)

    def label(self, state: Baked) -> Label:
        """Return the last event."""
        return frozenset({state.event}) if state.event else NO_EVENT

    def transition_memory(self, state: Baked) -> tuple[str, bool]:
        """Where the last cookie was put, and whether it is still there."""
        return state.corner, state.lies

    def reward_memory(self, state: Baked) -> int:
        """Nothing: a cookie that can be eaten is seen."""
        return 0


class Looked(NamedTuple):
    """The agent's cell, the cookie's, and the rooms that may hold it given the observations.

    `maybe` is "" if there is no cookie, and "north or south" after a press.
    """

    cell: Cell
    corner: str = ""
    maybe: str = ""
    event: str = ""
    has_changed: bool = False


class PublishedCookieRules:
    """The rules of the published cookie world; see `Cookie`."""

    actions = tuple(MOVES)

    def starts(self) -> Sequence[Looked]:
        """Begin in the hallway, without a cookie."""
        return [Looked(START)]

    def step(self, state: Looked, action: int) -> tuple[Looked, float, bool]:
        """Move; being on the button puts a cookie anywhere, reaching a cookie eats it."""
        action, chance = divmod(action, len(CORNERS))
        cell = moved(state.cell, MOVES[self.actions[action]])
        corner, maybe, event = state.corner, state.maybe, ""
        if cell == BUTTON:
            corner, maybe, event = _ORDER[chance], "north or south", "button"
        elif corner and cell == CORNERS[corner]:
            corner, maybe, event = "", "", "cookie eaten"
        elif maybe and room_of(cell) in ("north", "south"):
            maybe = corner.split("-")[0]
        after = Looked(cell, corner, maybe, event)
        changed = self._detected(after) != self._detected(state)
        return after._replace(has_changed=changed), float(event == "cookie eaten"), False

    def observation(self, state: Looked) -> str:
        """Show the cell, and a cookie in the same room."""
        return view(state.cell, [f"{side(state.corner)} cookie"] if self._sees(state) else [])

    def _sees(self, state: Looked) -> bool:
        return state.corner != "" and seen_from(state.cell, state.corner)

    def _detected(self, state: Looked) -> Label:
        """Return the output of the published detectors at this step."""
        seen = {"cookie"} if self._sees(state) else set()
        return frozenset({room_of(state.cell)} | seen | ({state.event} if state.event else set()))

    def label(self, state: Looked) -> Label:
        """Return the room and its detected contents whenever they change."""
        return self._detected(state) if state.has_changed else NO_EVENT

    def transition_memory(self, state: Looked) -> str:
        """The rooms that may hold a cookie."""
        return state.maybe

    def reward_memory(self, state: Looked) -> int:
        """Nothing: a cookie that can be eaten is seen."""
        return 0


class Cookie(World):
    """Press the button, find the cookie, eat it, and go back for the next one.

    Each step that ends on the button removes the cookie, if any, and puts the next one
    in the next of four corners: north-west, north-east, south-west, south-east, and so
    on. Eating it pays 1. The agent sees its cell, and a cookie only from within the same
    room; pressing and eating are its two events.

    The world has no end, so `gym.make` cuts episodes after 5,000 steps. With `cookies=N`
    the episode ends with the Nth; then the agent also sees the number left, since
    otherwise no memory would predict the end.

    Memory: 8 TM states, the corner of the last cookie and whether it has been
    eaten (5 with `cookies=1`); one RM state, since a cookie that can be eaten is seen.

    With `published=True` chance chooses the corner, and labels are as published: the
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
            raise OptionError(f"cookies={cookies}: the published world never ends, so leave it out")
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
        now: Baked | Looked = self.mechanics.true_states[state]
        if isinstance(now, Looked):
            now = Baked(now.cell, now.corner, now.corner != "", None)
        things = {BUTTON: "button"}
        if now.lies:
            things[CORNERS[now.corner]] = "cookie"
        where = f"lies {now.corner}" if now.lies else "none lies anywhere"
        left = () if now.left is None else (f"{now.left} left to eat",)
        return Picture(
            ROWS,
            COLUMNS,
            now.cell,
            things,
            {"button": "B", "cookie": "C"},
            solid=WALLS,
            captions=(f"cookie: {where}", *left),
        )
