"""The symbol world: a sign far away says which of six symbols to walk to."""

from collections.abc import Sequence
from itertools import product
from typing import Final, NamedTuple

from resolvent.traces.symbols import NO_EVENT, Label
from resolvent.worlds.drawing import Cell, Picture
from resolvent.worlds.env import World
from resolvent.worlds.lrm_house import (
    COLUMNS,
    MOVES,
    ROWS,
    START,
    WALLS,
    moved,
    room_of,
    view,
)
from resolvent.worlds.mechanics import Mechanics

SYMBOLS: Final = ("club", "diamond", "spade")
ARROWS: Final[dict[str, tuple[str, ...]]] = {
    "go north": ("north",),
    "go south": ("south",),
    "go anywhere": ("north", "south"),
}
"""The directions of the sign, with the rooms whose symbol then pays."""

_ROW = {"north": 1, "south": 15}
_AT: Final = {
    (row, column): symbol for row in _ROW.values() for column, symbol in enumerate(SYMBOLS, start=1)
}


class Search(NamedTuple):
    """The agent's cell, the text of the sign, and whether it has been read."""

    cell: Cell
    symbol: str
    arrow: str
    has_read: bool = False
    has_changed: bool = False


class SymbolRules:
    """The rules of the symbol world; see `Symbol`."""

    actions = tuple(MOVES)

    def starts(self) -> Sequence[Search]:
        """Begin in the hallway; the sign says any of nine things."""
        return [Search(START, symbol, arrow) for symbol, arrow in product(SYMBOLS, ARROWS)]

    def step(self, state: Search, action: int) -> tuple[Search, float, bool]:
        """Move; reaching a symbol ends the episode, and pays if it is the sign's."""
        cell = moved(state.cell, MOVES[self.actions[action]])
        has_read = state.has_read or room_of(cell) == "east"
        after = state._replace(cell=cell, has_read=has_read)
        after = after._replace(has_changed=_detected(after) != _detected(state))
        if cell not in _AT:
            return after, 0.0, False
        right = _AT[cell] == state.symbol and room_of(cell) in ARROWS[state.arrow]
        return after, 1.0 if right else -1.0, True

    def observation(self, state: Search) -> str:
        """Show the cell, and the sign from within its room."""
        in_sight = room_of(state.cell) == "east"
        return view(state.cell, [state.symbol, state.arrow] if in_sight else [])

    def label(self, state: Search) -> Label:
        """Return the room, the sign and the symbol reached, whenever they change."""
        return _detected(state) if state.has_changed else NO_EVENT

    def transition_memory(self, state: Search) -> tuple[str, ...]:
        """The text of the sign, once it was read."""
        return (state.symbol, state.arrow) if state.has_read else ()

    def reward_memory(self, state: Search) -> int:
        """Nothing more, since the TM state already contains the sign."""
        return 0


def _detected(state: Search) -> Label:
    """Return the output of the published detectors at this step."""
    room = room_of(state.cell)
    if room == "east":
        return frozenset({room, state.symbol, state.arrow})
    reached = _AT.get(state.cell)
    return frozenset({room} if reached is None else {room, f"{reached} reached"})


class Symbol(World):
    """Read a sign, remember it, and walk to the symbol that it names.

    A club, a diamond and a spade lie in the room north of a hallway, and again in the
    room south of it. A sign in the east room names one of them, and says to go north,
    south or anywhere. Reaching the right one pays 1, any other −1; either ends the
    episode. The agent sees its cell, and the sign from within its room. Labels are
    the room and its detected contents, whenever they change. The text of the sign is
    drawn for each episode. `gym.make` cuts episodes after 5,000 steps.

    Memory: 10 TM states, nothing read yet or one of nine signs; one RM state, as it is
    supplemented with the TM's. The text of an unread sign, and whether a symbol pays before
    it was read, are left to chance: there the machines give one of several equally likely
    answers.

    >>> machines = Symbol(slip=0.05).machines()
    >>> machines.transition.states, machines.reward.states
    (10, 1)
    """

    def __init__(self, *, slip: float = 0.0, render_mode: str | None = None) -> None:
        super().__init__(Mechanics.explore(SymbolRules(), uncertain=True), render_mode, slip=slip)

    def picture(self, state: int) -> Picture:
        """Draw the house, with the symbols and the text of the sign."""
        now: Search = self.mechanics.true_states[state]
        return Picture(
            ROWS,
            COLUMNS,
            now.cell,
            dict(_AT),
            {"club": "C", "diamond": "D", "spade": "S"},
            solid=WALLS,
            captions=(
                f"the sign, {'read' if now.has_read else 'not read'}: {now.symbol}, {now.arrow}",
            ),
        )
