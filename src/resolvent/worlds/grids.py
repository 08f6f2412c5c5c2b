"""The phase grids of the paper, the office of Reward Machines, and the T-maze.

Paper: "Efficiency Comparison with Baselines", whose three grids the phase grids are. The office:
Toro Icarte, Klassen, Valenzano and McIlraith, "Using Reward Machines for High-Level Task
Specification and Decomposition in Reinforcement Learning" (2018). The T-maze: Bakker,
"Reinforcement Learning with Long Short-Term Memory" (2001).
"""

from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from resolvent._util.validation import check_arguments, check_at_least, quoted
from resolvent.errors import OptionError
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces.symbols import NO_EVENT, Label
from resolvent.worlds.drawing import Cell, Picture, checklist
from resolvent.worlds.env import VectorWorld, World
from resolvent.worlds.mechanics import Mechanics, Rules


def _label(name: str | None) -> Label:
    return NO_EVENT if name is None else frozenset({name})


# --- Phase grids ---------------------------------------------------------------------------------

_GRID_DIRECTIONS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}

_GRID_LETTERS = {"Sofa": "S", "Stair": "T", "Coffee": "C", "TV": "V", "Grid": "G"}

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


class _GridState(NamedTuple):
    row: int
    column: int
    done: int


class _PhaseGridRules(Rules[_GridState]):
    actions = tuple(_GRID_DIRECTIONS)

    def __init__(self, size: int) -> None:
        self.size = size
        self.task = _TASKS[size]
        self.things = {cell: name for name, cells in _LABELS[size].items() for cell in cells}

    def starts(self) -> Sequence[_GridState]:
        """Begin anywhere, with nothing done: the label of the first cell does not count."""
        cells = range(self.size)
        return [_GridState(row, column, 0) for row in cells for column in cells]

    def step(self, state: _GridState, action: int) -> tuple[_GridState, float, bool]:
        """Move, or stay at the edge; in both cases the label of the cell counts."""
        down, right = _GRID_DIRECTIONS[self.actions[action]]
        row, column = state.row + down, state.column + right
        if not (0 <= row < self.size and 0 <= column < self.size):
            row, column = state.row, state.column
        done = state.done + (self.things.get((row, column)) == self.task[state.done])
        ended = done == len(self.task)
        return _GridState(row, column, done), float(ended), ended

    def observation(self, state: _GridState) -> Cell:
        return state.row, state.column

    def label(self, state: _GridState) -> Label:
        return _label(self.things.get((state.row, state.column)))

    def reward_memory(self, state: _GridState) -> int:
        return state.done


class PhaseGrid(World):
    """Visit cells in the order of the task; only the current cell is visible.

    The task is Coffee → Stair on the 3×3 grid, Coffee → Sofa → Stair on 4×4, and Coffee → Sofa → TV
    → Stair on 5×5. The last cell ends the episode with the reward 1; the progress is not observed.
    Episodes begin on any cell, and its label does not count until it is read again.

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
        self.rules = _PhaseGridRules(size)
        super().__init__(Mechanics.explore(self.rules), render_mode, slip=slip)

    def picture(self, state: int) -> Picture:
        """Draw the grid and the progress in the task."""
        now: _GridState = self.mechanics.true_states[state]
        task = {name: number < now.done for number, name in enumerate(self.rules.task)}
        return Picture(
            self.size,
            self.size,
            (now.row, now.column),
            self.rules.things,
            _GRID_LETTERS,
            captions=("task: " + checklist(task),),
        )


# --- The office ----------------------------------------------------------------------------------

Task: TypeAlias = Literal["coffee", "mail", "both", "patrol"]
Position: TypeAlias = tuple[int, int]  # x from the left and y from the bottom, as in the papers

WIDTH, HEIGHT = 12, 9

_OFFICE_DIRECTIONS = {"up": (0, 1), "right": (1, 0), "down": (0, -1), "left": (-1, 0)}

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
_OFFICE_LETTERS = dict(zip(_POSITIONS, "ABCDEFGN", strict=True))  # as on the papers' maps
_NAME_AT = {position: name for name, positions in _POSITIONS.items() for position in positions}

_FETCHED: dict[Task, tuple[str, ...]] = {
    "coffee": ("coffee",),
    "mail": ("mail",),
    "both": ("coffee", "mail"),
}
_PATROL = ("a", "b", "c", "d")

_WALLS = frozenset(
    {((x, y), (x + 1, y)) for x in (2, 5, 8) for y in set(range(9)) - {1, 7}}
    | {((x, 5), (x, 6)) for x in set(range(12)) - {1, 4, 7, 10}}
    | {((x, 2), (x, 3)) for x in set(range(12)) - {1, 10}}
)
"""The walls of rooms of three by three, most with a door in the middle."""


class _OfficeState(NamedTuple):
    x: int
    y: int
    done: frozenset[str] = frozenset()  # things fetched, or positions visited in order


class _OfficeRules(Rules[_OfficeState]):
    actions = tuple(_OFFICE_DIRECTIONS)

    def __init__(self, task: Task) -> None:
        self.task = task

    def starts(self) -> Sequence[_OfficeState]:
        return [_OfficeState(2, 1)]

    def step(self, state: _OfficeState, action: int) -> tuple[_OfficeState, float, bool]:
        """Move unless a wall is in the way; then update the progress."""
        across, up = _OFFICE_DIRECTIONS[self.actions[action]]
        here, there = (state.x, state.y), (state.x + across, state.y + up)
        inside = 0 <= there[0] < WIDTH and 0 <= there[1] < HEIGHT
        if not inside or (here, there) in _WALLS or (there, here) in _WALLS:
            there = here
        name, done = _NAME_AT.get(there), state.done
        if self.task == "patrol":
            is_next = name == _PATROL[len(done)]
            finished = is_next and name == _PATROL[-1]
        else:
            is_next = name in _FETCHED[self.task]
            finished = name == "office" and done == set(_FETCHED[self.task])
        if is_next and name is not None:
            done |= {name}
        return _OfficeState(*there, done), float(finished), finished or name == "plant"

    def observation(self, state: _OfficeState) -> Position:
        return state.x, state.y

    def label(self, state: _OfficeState) -> Label:
        return _label(_NAME_AT.get((state.x, state.y)))

    def reward_memory(self, state: _OfficeState) -> frozenset[str]:
        return state.done


class Office(World):
    """Run an errand in an office of twelve rooms, seeing only your position.

    `task="coffee"` fetches coffee to the office and `"mail"` the mail, `"both"` both in any order,
    `"patrol"` goes to a, b, c and d in this order. Finishing ends the episode with the reward 1,
    walking into a plant without. Fetched things and visited positions are not observed.

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
        check_arguments(Office.__init__, locals())
        self.task = task
        super().__init__(Mechanics.explore(_OfficeRules(task)), render_mode, slip=slip)

    def picture(self, state: int) -> Picture:
        """Draw the office and the progress of the errand."""
        now: _OfficeState = self.mechanics.true_states[state]
        goals = _PATROL if self.task == "patrol" else _FETCHED[self.task]
        verb = "visited" if self.task == "patrol" else "fetched"
        return Picture(
            HEIGHT,
            WIDTH,
            _drawn((now.x, now.y)),
            {_drawn(position): name for position, name in _NAME_AT.items()},
            _OFFICE_LETTERS,
            walls=frozenset((_drawn(first), _drawn(second)) for first, second in _WALLS),
            captions=(f"{verb}: " + checklist({name: name in now.done for name in goals}),),
        )


def _drawn(position: Position) -> Cell:
    """Return the row and column at which a position is drawn."""
    return HEIGHT - 1 - position[1], position[0]


# --- The T-maze ----------------------------------------------------------------------------------

_CUES = ("up", "down")


class _MazeState(NamedTuple):
    x: int
    cue: str
    turned: str = ""


class _TMazeRules(Rules[_MazeState]):
    actions = ("up", "right", "down", "left")

    def __init__(self, length: int) -> None:
        self.length = length

    def starts(self) -> Sequence[_MazeState]:
        return [_MazeState(0, cue) for cue in _CUES]

    def step(self, state: _MazeState, action: int) -> tuple[_MazeState, float, bool]:
        """Move along the corridor, or at its end turn up or down."""
        name = self.actions[action]
        if name in _CUES:
            if state.x < self.length:
                return state, 0.0, False
            return state._replace(turned=name), float(name == state.cue), True
        x = state.x + (1 if name == "right" else -1)
        return state._replace(x=min(max(x, 0), self.length)), 0.0, False

    def observation(self, state: _MazeState) -> str:
        if state.turned:
            return f"{state.turned} end"
        if state.x == self.length:
            return "junction"
        return f"cue {state.cue}" if state.x == 0 else f"corridor {state.x}"

    def label(self, state: _MazeState) -> Label:
        return _label(f"cue {state.cue}" if state.x == 0 else None)

    def transition_memory(self, state: _MazeState) -> str:
        return state.cue


class TMaze(World):
    """Walk down a corridor and turn the way that a cue at its start showed.

    The corridor has `length` steps. Turning at the junction ends the episode,
    with the reward 1 in the direction of the cue, which is visible at the start only.

    Memory: two TM states, one for each cue, since going back shows it again; the RM needs one
    state, as it is supplemented with the TM's. The cue is the label of the first observation, so
    labels are read from the first one on: infer with `timing="current-with-initial"`.

    >>> maze = TMaze(5)
    >>> maze.machines().transition.states, str(maze.timing)
    (2, 'current-with-initial')
    """

    timing: ClassVar[LabelTiming] = LabelTiming.CURRENT_WITH_INITIAL

    def __init__(
        self, length: int = 10, *, slip: float = 0.0, render_mode: str | None = None
    ) -> None:
        check_at_least(1, length=length)
        self.length = length
        super().__init__(Mechanics.explore(_TMazeRules(length)), render_mode, slip=slip)

    def picture(self, state: int) -> Picture:
        """Draw the maze on its side, with the cue at the start."""
        now: _MazeState = self.mechanics.true_states[state]
        row = {"": 1, "up": 0, "down": 2}[now.turned]
        return Picture(
            3,
            self.length + 1,
            (row, now.x),
            {(1, 0): f"cue {now.cue}"},
            {"cue up": "U", "cue down": "D"},
            solid=frozenset((row, x) for row in (0, 2) for x in range(self.length)),
            captions=(f"cue: {now.cue}",),
        )


VectorPhaseGrid = VectorWorld.of(PhaseGrid)
VectorOffice = VectorWorld.of(Office)
VectorTMaze = VectorWorld.of(TMaze)
