"""The paper's 25×25 world, drawn from a seed or read from a file.

Files are those that the paper's authors publish. A file is checked completely before it is used;
an invalid one raises a `ModelError`.

Paper: the appendix "Ablation Study Environment Generation".
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from resolvent._util.files import atomic_write, decode_json, read_content
from resolvent._util.text import short
from resolvent._util.validation import explain_memory_errors
from resolvent.errors import ModelError
from resolvent.worlds.drawing import Cell, Picture
from resolvent.worlds.env import VectorWorld, World
from resolvent.worlds.grid_world import GridWorld, random_grid_world

_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class RandomWorld(World):
    """A grid whose labels open and close cells, and give rewards, by two hidden machines.

    The same `world_seed` draws the same world, whose machines are minimal and can be distinguished
    by walking; the other arguments are those of the paper. With `path` the world is read from a
    file instead, one that `save` wrote or that the paper's authors publish. Coordinates run from 0
    to `size`, and an observation is x·(size+1) + y. Episodes begin on cells with two even
    coordinates, end when the Reward Machine does, and have no step limit.

    Memory: all `tm_states`, and all `rm_states` but the terminal one.

    >>> world = RandomWorld(world_seed=0)
    >>> world.machines().transition.states, world.machines().reward.states
    (7, 2)
    """

    def __init__(
        self,
        world_seed: int = 0,
        size: int = 25,
        labels: int = 5,
        tm_states: int = 7,
        rm_states: int = 3,
        blocked_share: float = 0.3,
        *,
        path: str | Path | None = None,
        slip: float = 0.0,
        render_mode: str | None = None,
    ) -> None:
        self.grid = (
            random_grid_world(world_seed, size, labels, tm_states, rm_states, blocked_share)
            if path is None
            else load_grid_world(path)
        )
        super().__init__(self.grid.mechanics(), render_mode, slip=slip)

    def save(self, path: str | Path) -> None:
        """Write the world, both machines included, to a JSON file; `path=` reads it again."""
        save_grid_world(self.grid, path)

    def picture(self, state: int) -> Picture:
        """Draw the grid, the cells that are impassable now, and the states of both machines."""
        grid, tables = self.grid, self.mechanics
        tm_state, rm_state = int(tables.transition_memory[state]), int(tables.reward_memory[state])
        return Picture(
            grid.size + 1,
            grid.size + 1,
            self._drawn(int(tables.observation_of[state])),
            {
                self._drawn(cell): f"label {label}"
                for cell, label in enumerate(grid.label_at)
                if label is not None
            },
            {f"label {label}": _LETTERS[label % len(_LETTERS)] for label in range(grid.labels)},
            solid=frozenset(map(self._drawn, grid.blocked[tm_state])),
            captions=(
                f"TM state {tm_state} (0 to {len(grid.tm_transitions) - 1}), "
                f"RM state {rm_state} (0 to {grid.terminal})",
            ),
        )

    def _drawn(self, observation: int) -> Cell:
        """Return the row and column at which a cell is drawn: x to the right, y upwards."""
        x, y = divmod(observation, self.grid.size + 1)
        return self.grid.size - y, x


VectorRandomWorld = VectorWorld.of(RandomWorld)

# --- Files ---------------------------------------------------------------------------------------

FORMAT: Final = "resolvent-world"
VERSION: Final = 1
_LARGEST = 1_000  # maximum of any count, so that a wrong number does not fill the memory
Position = tuple[int, int]
T = TypeVar("T")
N = TypeVar("N", int, float)
Table = dict[str, dict[str, T]]  # values by the names of states and the numbers of labels


class _Environment(msgspec.Struct):
    size: int


class _Labels(msgspec.Struct):
    count: int
    mapping: dict[str, int]


class _TransitionAutomaton(msgspec.Struct):
    states_count: int
    transitions: Table[str]
    impassable_positions: dict[str, list[str]]


class _RewardAutomaton(msgspec.Struct):
    states_count: int
    transitions: Table[str]
    rewards: Table[float]
    terminal_state: str


class WorldFile(msgspec.Struct):
    """A file of the authors' generator; a transition that is missing stays.

    Cells are written as "(1, 3)", states as "q_2" or "q'_2". The authors' own files have neither
    format nor version.
    """

    environment: _Environment
    labels: _Labels
    transition_automaton: _TransitionAutomaton
    reward_automaton: _RewardAutomaton
    format: str = FORMAT
    version: int = VERSION


def save_grid_world(world: GridWorld, path: str | Path) -> None:
    """Write a world to a JSON file atomically."""

    def position(cell: int) -> str:
        return str(divmod(cell, world.size + 1))

    def named(rows: Sequence[Sequence[Any]], name: str, value: Callable[[Any], Any]) -> Any:
        return {
            f"{name}_{state}": {str(label): value(entry) for label, entry in enumerate(row)}
            for state, row in enumerate(rows)
        }

    labels = {position(cell): at for cell, at in enumerate(world.label_at) if at is not None}
    content = WorldFile(
        _Environment(world.size),
        _Labels(world.labels, labels),
        _TransitionAutomaton(
            len(world.tm_transitions),
            named(world.tm_transitions, "q", "q_{}".format),
            {
                f"q_{state}": [position(cell) for cell in sorted(cells)]
                for state, cells in enumerate(world.blocked)
            },
        ),
        _RewardAutomaton(
            len(world.rm_transitions),
            named(world.rm_transitions, "q'", "q'_{}".format),
            named(world.rm_rewards, "q'", float),
            f"q'_{world.terminal}",
        ),
    )
    with atomic_write(path) as file:
        file.write(msgspec.json.encode(content) + b"\n")


def load_grid_world(path: str | Path) -> GridWorld:
    """Read a world that `save_grid_world` or the authors' generator wrote; or `ModelError`."""
    with explain_memory_errors(f"{path} was read"):
        content = read_content(path)
        try:
            return _world_of(decode_json(content, WorldFile))
        except ValueError as error:
            raise ModelError(f"{path}: not a world: {error}") from error


def _world_of(file: WorldFile) -> GridWorld:
    """Return the world of a file; `ValueError` if a count or reference is invalid."""
    if (file.format, file.version) != (FORMAT, VERSION):
        raise ValueError(
            f"format {short(file.format)}, version {file.version}: this Resolvent reads {FORMAT}, "
            f"version {VERSION}"
        )
    tm, rm, size = file.transition_automaton, file.reward_automaton, file.environment.size
    n_labels, tm_states, rm_states = file.labels.count, tm.states_count, rm.states_count
    for what, count, least in (
        ("size", size, 1),
        ("labels", n_labels, 1),
        ("TM states", tm_states, 1),
        ("RM states", rm_states, 2),
    ):
        if not least <= count <= _LARGEST:
            raise ValueError(f"{what}: {count}, use {least} to {_LARGEST:,}")
    side = size + 1
    labeled = {_cell(name, side): label for name, label in file.labels.mapping.items()}
    for cell, label in labeled.items():
        if not 0 <= label < n_labels:
            raise ValueError(f"label {label} at {divmod(cell, side)}: there are {n_labels} labels")
    blocked: list[frozenset[int]] = [frozenset()] * tm_states
    for name, positions in tm.impassable_positions.items():
        cells = frozenset(_cell(position, side) for position in positions)
        for cell in cells - labeled.keys():
            raise ValueError(f"{divmod(cell, side)} is impassable but has no label")
        blocked[_state(name, tm_states)] = cells

    # The terminal state of a `GridWorld` is the last one, so the two are swapped.
    terminal = _state(rm.terminal_state, rm_states)
    order = list(range(rm_states))
    order[terminal], order[-1] = rm_states - 1, terminal

    def rm_state(name: str) -> int:
        return order[_state(name, rm_states)]

    tm_state = partial(_state, states=tm_states)
    tm_rows = [[state] * n_labels for state in range(tm_states)]
    _fill(tm_rows, tm.transitions, tm_state, tm_state)
    rm_rows = [[state] * n_labels for state in range(rm_states)]
    _fill(rm_rows, rm.transitions, rm_state, rm_state)
    rewards = [[0.0] * n_labels for _ in range(rm_states)]
    _fill(rewards, rm.rewards, rm_state, float)
    return GridWorld(
        size,
        tuple(labeled.get(cell) for cell in range(side * side)),
        tuple(map(tuple, tm_rows)),
        tuple(blocked),
        tuple(map(tuple, rm_rows)),
        tuple(map(tuple, rewards)),
    )


def _fill(
    rows: list[list[N]], table: Table[T], state_of: Callable[[str], int], value_of: Callable[[T], N]
) -> None:
    """Enter the values of a table of a file into rows by state and label."""
    for name, values in table.items():
        row = rows[state_of(name)]
        for label, value in values.items():
            if not re.fullmatch("[0-9]{1,9}", label) or int(label) >= len(row):
                raise ValueError(f"label {short(repr(label))}: there are {len(row)} labels")
            row[int(label)] = value_of(value)


def _state(name: str, states: int) -> int:
    match = re.fullmatch(r"q'?_([0-9]{1,9})", name)
    if match is None:
        raise ValueError(f"{short(repr(name))} is not a state such as q_0")
    if int(match[1]) >= states:
        raise ValueError(f"state {name}: there are {states} states")
    return int(match[1])


def _cell(text: str, side: int) -> int:
    match = re.fullmatch(r"\(([0-9]{1,9}), *([0-9]{1,9})\)", text)
    if match is None:
        raise ValueError(f"{short(repr(text))} is not a cell such as (1, 3)")
    x, y = int(match[1]), int(match[2])
    if max(x, y) >= side:
        raise ValueError(f"cell {text} is outside the grid of size {side - 1}")
    return x * side + y
