"""Small grids on which labels must be visited in the right order.

Paper: "Efficiency Comparison with Baselines", whose three grids these are.
"""

from collections.abc import Sequence
from typing import NamedTuple

from resolvent._util.validation import quoted
from resolvent.errors import OptionError
from resolvent.traces.symbols import NO_EVENT, Label
from resolvent.worlds.drawing import Cell, Picture, checklist
from resolvent.worlds.env import World
from resolvent.worlds.mechanics import Mechanics, Rules

_DIRECTIONS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}

_LETTERS = {"Sofa": "S", "Stair": "T", "Coffee": "C", "TV": "V", "Grid": "G"}

_LABELS: dict[int, dict[str, list[Cell]]] = {
    3: {"Sofa": [(0, 1)], "Stair": [(1, 2)], "Coffee": [(2, 0)], "TV": [(2, 1)], "Grid": [(2, 2)]},
    4: {"Sofa": [(0, 1)], "Stair": [(1, 3)], "Coffee": [(3, 0)], "TV": [(3, 1)], "Grid": [(3, 3)]},
    5: {
        "Sofa": [(0, 2), (1, 4)],
        "Stair": [(2, 4)],
        "Coffee": [(4, 0)],
        "TV": [(4, 2)],
        "Grid": [(3, 3), (3, 4), (4, 3), (4, 4)],
    },
}

_TASKS = {
    3: ("Coffee", "Stair"),
    4: ("Coffee", "Sofa", "Stair"),
    5: ("Coffee", "Sofa", "TV", "Stair"),
}


class GridState(NamedTuple):
    """The agent's cell, and its progress in the task."""

    row: int
    column: int
    done: int


class PhaseGridRules(Rules[GridState]):
    """The rules of a phase grid; see `PhaseGrid`."""

    actions = tuple(_DIRECTIONS)

    def __init__(self, size: int) -> None:
        self.size = size
        self.task = _TASKS[size]
        self.things = {cell: name for name, cells in _LABELS[size].items() for cell in cells}

    def starts(self) -> Sequence[GridState]:
        """Begin anywhere, with nothing done: the label of the first cell does not count."""
        cells = range(self.size)
        return [GridState(row, column, 0) for row in cells for column in cells]

    def step(self, state: GridState, action: int) -> tuple[GridState, float, bool]:
        """Move, or stay at the edge; in both cases the label of the cell counts."""
        down, right = _DIRECTIONS[self.actions[action]]
        row, column = state.row + down, state.column + right
        if not (0 <= row < self.size and 0 <= column < self.size):
            row, column = state.row, state.column
        done = state.done + (self.things.get((row, column)) == self.task[state.done])
        ended = done == len(self.task)
        return GridState(row, column, done), float(ended), ended

    def observation(self, state: GridState) -> Cell:
        """Show the cell."""
        return state.row, state.column

    def label(self, state: GridState) -> Label:
        """Return the name of the thing on the cell."""
        name = self.things.get((state.row, state.column))
        return NO_EVENT if name is None else frozenset({name})

    def reward_memory(self, state: GridState) -> int:
        """Return the progress in the task."""
        return state.done


class PhaseGrid(World):
    """Visit cells in the order of the task; only the current cell is visible.

    The task is Coffee → Stair on the 3×3 grid, Coffee → Sofa → Stair on 4×4, and
    Coffee → Sofa → TV → Stair on 5×5. The last cell ends the episode with the reward 1;
    the progress is not observed. Episodes begin on any cell, and its label
    does not count until it is read again.

    Memory: one TM state, since no transition depends on the task; one RM state for each
    cell of the task.

    >>> grid = PhaseGrid(3)
    >>> grid.machines().transition.states, grid.machines().reward.states
    (1, 2)
    """

    def __init__(self, size: int = 3, *, slip: float = 0.0, render_mode: str | None = None) -> None:
        if size not in _TASKS:
            raise OptionError(f"size={quoted(size)}: use 3, 4 or 5")
        self.size = size
        self.rules = PhaseGridRules(size)
        super().__init__(Mechanics.explore(self.rules), render_mode, slip=slip)

    def picture(self, state: int) -> Picture:
        """Draw the grid and the progress in the task."""
        now: GridState = self.mechanics.true_states[state]
        task = self.rules.task
        return Picture(
            self.size,
            self.size,
            (now.row, now.column),
            self.rules.things,
            _LETTERS,
            captions=(
                "task: " + checklist({name: number < now.done for number, name in enumerate(task)}),
            ),
        )
