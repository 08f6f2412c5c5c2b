"""The paper's 25×25 world, drawn from a seed or read from a file.

Paper: the appendix "Ablation Study Environment Generation".
"""

from pathlib import Path

from resolvent.worlds.drawing import Cell, Picture
from resolvent.worlds.env import World
from resolvent.worlds.grid_files import load_grid_world, save_grid_world
from resolvent.worlds.grid_generator import random_grid_world

_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class RandomWorld(World):
    """A grid whose labels open and close cells, and pay, according to two hidden machines.

    The same `world_seed` draws the same world, whose machines are minimal and can
    be distinguished by walking; the other arguments are those of the paper. With
    `path` the world is read from a file instead, one that `save` wrote or that the
    paper's authors publish. Coordinates run from 0 to `size`, and an observation
    is x·(size+1) + y. Episodes begin on cells with two even coordinates, end when
    the Reward Machine does, and have no step limit.

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
        """Write the world, both machines included, to a JSON file; `path=` reads it back."""
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
