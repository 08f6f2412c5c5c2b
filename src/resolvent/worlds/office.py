"""The office of the papers on Reward Machines: deliver coffee and mail, or patrol.

Toro Icarte, Klassen, Valenzano and McIlraith, "Using Reward Machines for
High-Level Task Specification and Decomposition in Reinforcement Learning" (2018).
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

from resolvent._util.validation import quoted
from resolvent.errors import OptionError
from resolvent.traces.symbols import NO_EVENT, Label
from resolvent.worlds.drawing import Cell, Picture, checklist
from resolvent.worlds.env import World
from resolvent.worlds.mechanics import Mechanics, Rules

Task: TypeAlias = Literal["coffee", "mail", "both", "patrol"]
Position: TypeAlias = tuple[int, int]
"""x from the left and y from the bottom, as in the papers."""

WIDTH, HEIGHT = 12, 9

_DIRECTIONS = {"up": (0, 1), "right": (1, 0), "down": (0, -1), "left": (-1, 0)}

_POSITIONS: dict[str, list[Position]] = {
    "a": [(1, 1)],
    "b": [(1, 7)],
    "c": [(10, 7)],
    "d": [(10, 1)],
    "mail": [(7, 4)],
    "coffee": [(8, 2), (3, 6)],
    "office": [(4, 4)],
    "plant": [(4, 1), (7, 1), (4, 7), (7, 7), (1, 4), (10, 4)],
}
_LETTERS = dict(zip(_POSITIONS, "ABCDEFGN", strict=True))  # as on the papers' maps
_NAME_AT = {position: name for name, positions in _POSITIONS.items() for position in positions}

_FETCHED: dict[Task, tuple[str, ...]] = {
    "coffee": ("coffee",),
    "mail": ("mail",),
    "both": ("coffee", "mail"),
}
_PATROL = ("a", "b", "c", "d")


def _walls() -> frozenset[tuple[Position, Position]]:
    """Return the walls of rooms of three by three, most with a door in the middle."""
    between_columns = {((x, y), (x + 1, y)) for x in (2, 5, 8) for y in set(range(9)) - {1, 7}}
    upper = {((x, 5), (x, 6)) for x in set(range(12)) - {1, 4, 7, 10}}
    lower = {((x, 2), (x, 3)) for x in set(range(12)) - {1, 10}}
    return frozenset(between_columns | upper | lower)


_WALLS = _walls()


class OfficeState(NamedTuple):
    """The agent's position and its progress: things fetched, or positions visited in order."""

    x: int
    y: int
    done: frozenset[str] = frozenset()


class OfficeRules(Rules[OfficeState]):
    """The rules of the office; see `Office`."""

    actions = tuple(_DIRECTIONS)

    def __init__(self, task: Task) -> None:
        self.task = task

    def starts(self) -> Sequence[OfficeState]:
        """Begin in the room at the bottom left."""
        return [OfficeState(2, 1)]

    def step(self, state: OfficeState, action: int) -> tuple[OfficeState, float, bool]:
        """Move unless a wall is in the way; then update the progress."""
        across, up = _DIRECTIONS[self.actions[action]]
        here, there = (state.x, state.y), (state.x + across, state.y + up)
        inside = 0 <= there[0] < WIDTH and 0 <= there[1] < HEIGHT
        if not inside or (here, there) in _WALLS or (there, here) in _WALLS:
            there = here
        name = _NAME_AT.get(there)
        if self.task == "patrol":
            done, finished = self._visited(state.done, name)
        else:
            done = state.done | ({name} & set(_FETCHED[self.task]) if name else set())
            finished = name == "office" and done == set(_FETCHED[self.task])
        return OfficeState(*there, frozenset(done)), float(finished), finished or name == "plant"

    def _visited(self, done: frozenset[str], name: str | None) -> tuple[frozenset[str], bool]:
        if name != _PATROL[len(done)]:
            return done, False
        return done | {name}, name == _PATROL[-1]

    def observation(self, state: OfficeState) -> Position:
        """Show the position."""
        return state.x, state.y

    def label(self, state: OfficeState) -> Label:
        """Return the thing at this position."""
        name = _NAME_AT.get((state.x, state.y))
        return NO_EVENT if name is None else frozenset({name})

    def reward_memory(self, state: OfficeState) -> frozenset[str]:
        """Return the things fetched, or the positions visited."""
        return state.done


class Office(World):
    """Run an errand in an office of twelve rooms, seeing only your position.

    `task="coffee"` fetches coffee to the office and `"mail"` the mail, `"both"`
    both in any order, `"patrol"` goes to a, b, c and d in this order. Finishing
    ends the episode with the reward 1, walking into a plant without. Fetched things and
    visited positions are not observed.

    Memory: one TM state, since no transition depends on the errand. RM states are the
    progress of the errand: 2 for coffee or mail, 4 for both, 4 for the patrol.

    Plants stand in the doorways, so random actions rarely finish: 6 episodes in
    10,000 deliver the coffee, and one in several million does any other errand.
    Collect with a policy that walks around them.

    >>> [Office(task).machines().reward.states for task in ("coffee", "mail", "both", "patrol")]
    [2, 2, 4, 4]
    """

    def __init__(
        self, task: Task = "coffee", *, slip: float = 0.0, render_mode: str | None = None
    ) -> None:
        if task not in get_args(Task):
            raise OptionError(f"task={quoted(task)}: use 'coffee', 'mail', 'both' or 'patrol'")
        self.task = task
        super().__init__(Mechanics.explore(OfficeRules(task)), render_mode, slip=slip)

    def picture(self, state: int) -> Picture:
        """Draw the office and the progress of the errand."""
        now: OfficeState = self.mechanics.true_states[state]
        goals = _PATROL if self.task == "patrol" else _FETCHED[self.task]
        verb = "visited" if self.task == "patrol" else "fetched"
        return Picture(
            HEIGHT,
            WIDTH,
            _drawn((now.x, now.y)),
            {_drawn(position): name for position, name in _NAME_AT.items()},
            _LETTERS,
            walls=frozenset((_drawn(first), _drawn(second)) for first, second in _WALLS),
            captions=(f"{verb}: " + checklist({name: name in now.done for name in goals}),),
        )


def _drawn(position: Position) -> Cell:
    """Return the row and column at which a position is drawn."""
    return HEIGHT - 1 - position[1], position[0]
