"""The T-maze: a cue at the start shows which way to turn at the end.

After Bakker, "Reinforcement Learning with Long Short-Term Memory" (2001).
"""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from resolvent.errors import OptionError
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces.symbols import NO_EVENT, Label
from resolvent.worlds.drawing import Cell, Picture
from resolvent.worlds.env import World
from resolvent.worlds.mechanics import Mechanics, Rules

_CUES = ("up", "down")


class MazeState(NamedTuple):
    """The agent's position, the cue, and the turn it has made."""

    x: int
    cue: str
    turned: str = ""


class TMazeRules(Rules[MazeState]):
    """The rules of the T-maze; see `TMaze`."""

    actions = ("up", "right", "down", "left")

    def __init__(self, length: int) -> None:
        self.length = length

    def starts(self) -> Sequence[MazeState]:
        """Begin at one of both cues."""
        return [MazeState(0, cue) for cue in _CUES]

    def step(self, state: MazeState, action: int) -> tuple[MazeState, float, bool]:
        """Move along the corridor, or at its end turn up or down."""
        name = self.actions[action]
        if name in _CUES:
            if state.x < self.length:
                return state, 0.0, False
            return state._replace(turned=name), float(name == state.cue), True
        x = state.x + (1 if name == "right" else -1)
        return state._replace(x=min(max(x, 0), self.length)), 0.0, False

    def observation(self, state: MazeState) -> str:
        """Show the position; the cue is visible only at the start."""
        if state.turned:
            return f"{state.turned} end"
        if state.x == self.length:
            return "junction"
        return f"cue {state.cue}" if state.x == 0 else f"corridor {state.x}"

    def label(self, state: MazeState) -> Label:
        """Return the cue where it is visible."""
        return frozenset({f"cue {state.cue}"}) if state.x == 0 else NO_EVENT

    def transition_memory(self, state: MazeState) -> str:
        """Return the cue: going back to the start shows it again."""
        return state.cue


class TMaze(World):
    """Walk down a corridor and turn the way that a cue at its start showed.

    The corridor has `length` steps. Turning at the junction ends the episode,
    with the reward 1 in the direction of the cue, which is visible at the start only.

    Memory: two TM states, one for each cue, since going back shows it again; the
    RM needs one state, as it is supplemented with the TM's. The cue is the
    label of the first observation, so labels are read from the first one on:
    infer with `timing="current-with-initial"`.

    >>> maze = TMaze(5)
    >>> maze.machines().transition.states, str(maze.timing)
    (2, 'current-with-initial')
    """

    timing: ClassVar[LabelTiming] = LabelTiming.CURRENT_WITH_INITIAL

    def __init__(
        self, length: int = 10, *, slip: float = 0.0, render_mode: str | None = None
    ) -> None:
        if length < 1:
            raise OptionError(f"length={length}: the corridor has at least one step")
        self.length = length
        super().__init__(Mechanics.explore(TMazeRules(length)), render_mode, slip=slip)

    def picture(self, state: int) -> Picture:
        """Draw the maze on its side, with the cue at the start."""
        now: MazeState = self.mechanics.true_states[state]
        junction = self.length
        row = {"": 1, "up": 0, "down": 2}[now.turned]
        corridor: set[Cell] = {(1, x) for x in range(junction + 1)}
        solid = {(row, x) for row in range(3) for x in range(junction + 1)} - corridor
        return Picture(
            3,
            junction + 1,
            (row, now.x),
            {(1, 0): f"cue {now.cue}"},
            {"cue up": "U", "cue down": "D"},
            solid=frozenset(solid - {(0, junction), (2, junction)}),
            captions=(f"cue: {now.cue}",),
        )
