"""The symbol world: a distant sign names the one of six symbols to reach."""

from collections.abc import Sequence
from itertools import product
from typing import Final, NamedTuple

from resolvent.traces.symbols import NO_EVENT, Label
from resolvent.worlds.drawing import Cell, Picture
from resolvent.worlds.env import World
from resolvent.worlds.lrm_house import ACTIONS, ROOM_OF, START, draw_house, next_cell, view
from resolvent.worlds.mechanics import Mechanics, Rules

SYMBOLS: Final = ("club", "diamond", "spade")
ARROWS: Final[dict[str, tuple[str, ...]]] = {
    "go north": ("north",),
    "go south": ("south",),
    "go anywhere": ("north", "south"),
}
"""The directions of the sign, with the rooms whose symbol then gives the reward."""

_ROW = {"north": 1, "south": 15}
_SYMBOL_AT: Final = {
    (row, column): symbol for row in _ROW.values() for column, symbol in enumerate(SYMBOLS, start=1)
}


class SearchState(NamedTuple):
    """The agent's cell, the text of the sign, and whether it has been read."""

    cell: Cell
    symbol: str
    arrow: str
    has_read: bool = False
    has_changed: bool = False


class SymbolRules(Rules[SearchState]):
    """The rules of the symbol world; see `Symbol`."""

    actions = ACTIONS

    def starts(self) -> Sequence[SearchState]:
        """Begin in the hallway, with one of nine signs."""
        return [SearchState(START, symbol, arrow) for symbol, arrow in product(SYMBOLS, ARROWS)]

    def step(self, state: SearchState, action: int) -> tuple[SearchState, float, bool]:
        """Move; reaching a symbol ends the episode, with a reward if it is the sign's."""
        cell = next_cell(state.cell, action)
        has_read = state.has_read or ROOM_OF[cell] == "east"
        after = state._replace(cell=cell, has_read=has_read)
        after = after._replace(has_changed=_detected(after) != _detected(state))
        if cell not in _SYMBOL_AT:
            return after, 0.0, False
        right = _SYMBOL_AT[cell] == state.symbol and ROOM_OF[cell] in ARROWS[state.arrow]
        return after, 1.0 if right else -1.0, True

    def observation(self, state: SearchState) -> str:
        """Show the cell, and the sign from within its room."""
        in_sight = ROOM_OF[state.cell] == "east"
        return view(state.cell, [state.symbol, state.arrow] if in_sight else [])

    def label(self, state: SearchState) -> Label:
        """Return the room, the sign and the symbol reached, whenever they change."""
        return _detected(state) if state.has_changed else NO_EVENT

    def transition_memory(self, state: SearchState) -> tuple[str, ...]:
        """Return the text of the sign, once it was read."""
        return (state.symbol, state.arrow) if state.has_read else ()


def _detected(state: SearchState) -> Label:
    """Return the output of the published detectors at this step."""
    room = ROOM_OF[state.cell]
    if room == "east":
        return frozenset({room, state.symbol, state.arrow})
    reached = _SYMBOL_AT.get(state.cell)
    return frozenset({room} if reached is None else {room, f"{reached} reached"})


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
        super().__init__(Mechanics.explore(SymbolRules(), uncertain=True), render_mode, slip=slip)

    def picture(self, state: int) -> Picture:
        """Draw the house, with the symbols and the text of the sign."""
        now: SearchState = self.mechanics.true_states[state]
        legend = {"club": "C", "diamond": "D", "spade": "S"}
        is_read = "read" if now.has_read else "not read"
        caption = f"the sign, {is_read}: {now.symbol}, {now.arrow}"
        return draw_house(now.cell, _SYMBOL_AT, legend, (caption,))
