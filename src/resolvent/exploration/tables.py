"""Where labels lead, machine by machine, in the codes of a log: all that exploring must know.

What machines answer is read off the log itself. So a machine can be mended by leading one
label elsewhere, and held against everything that was seen, in a few milliseconds.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.control.planning.situations import that_matter
from resolvent.exploration.buffer import Columns, Buffer
from resolvent.machines import Machine, Machines
from resolvent.samples import LabelTiming
from resolvent.traces.vocabulary import Codes

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class TransitionTables:
    """For each kind of machine, the state that each label leads to from each; −1 where unread."""

    kinds: tuple[str, ...]
    moves: tuple[Codes, ...]
    timing: LabelTiming

    @classmethod
    def of(cls, machines: Machines, log: Buffer) -> "TransitionTables":
        """Return the moves of machines, for the labels of a log."""
        acting = that_matter(machines)
        moves = tuple(_moves(one, log) for one in acting.values())
        return cls(tuple(acting), moves, machines.timing)

    @property
    def sizes(self) -> list[int]:
        """How many states each machine has."""
        return [len(one) for one in self.moves]

    def equals(self, other: "TransitionTables") -> bool:
        """Whether both lead everywhere to the same states."""
        return (
            self.kinds == other.kinds
            and self.timing is other.timing
            and all(map(np.array_equal, self.moves, other.moves))
        )

    def for_labels(self, labels: int) -> "TransitionTables":
        """Return the same with a column for each of so many labels."""
        if all(one.shape[1] == labels for one in self.moves):
            return self
        wider = []
        for one in self.moves:
            more = np.full((len(one), labels - one.shape[1]), -1, np.int32)
            wider.append(np.hstack([one, more]))
        return TransitionTables(self.kinds, tuple(wider), self.timing)


def _moves(machine: Machine, log: Buffer) -> Codes:
    codes = [machine.labels.get(label) for label in log.labels.values]
    lost = np.full(machine.states, -1, np.int32)
    columns = [lost if code is None else machine.transitions[:, code] for code in codes]
    return np.ascontiguousarray(np.stack(columns, axis=1)).astype(np.int32)


@dataclass(frozen=True, slots=True)
class Conflicts:
    """How many steps have another answer than the first one in the same state.

    `lost` counts steps at which a machine is in no state; `bad` is the first step that clashes,
    and `witness` the one that it clashes with.
    """

    count: int
    lost: int
    bad: int
    witness: int


class QueriedSteps:
    """The steps of a log as machines are asked about them, with what they should have answered."""

    def __init__(self, columns: Columns, timing: LabelTiming, kinds: tuple[str, ...]) -> None:
        self.columns, self.kinds = columns, kinds
        self.at, self.ended = columns.positions, columns.terminal_steps
        read = columns.labels[self.at]
        if timing.lag:
            read[1:] = read[:-1].copy()
        if timing.first or timing.lag:
            read[columns.offsets[:-1]] = -1
        self.read: Codes = read
        asked, self.question = columns.queries
        self.questions = len(asked)
        of_kind = {"transition": columns.observations_after, "reward": columns.reward_levels[1]}
        self.answers = [of_kind.get(kind, self.ended.astype(np.int32)) for kind in kinds]
        self.trials = 0
        self._asked = _core.AskedSteps(read, columns.offsets, self.question, self.questions)
        self.first = np.zeros(columns.steps, bool)
        self.first[columns.offsets[:-1]] = True

    @classmethod
    def of_columns(cls, tables: TransitionTables, columns: Columns) -> "QueriedSteps":
        """Return the steps as these machines are asked about them."""
        return cls(columns, tables.timing, tables.kinds)

    def walk(self, moves: Codes) -> Codes:
        """Return the state at every step; −1 from where a label leads nowhere."""
        table = np.ascontiguousarray(moves).ravel()
        return _core.walk_states(table, moves.shape[1], self.read, self.columns.offsets)

    def keys(self, states: Codes, beside: Codes | None, size: int) -> NDArray[np.int64]:
        """Return what each step asks of a state, beside that of the Transition Machine."""
        key = states.astype(np.int64)
        if beside is not None:
            key = key * size + beside
        return key * self.questions + self.question

    def clashes(
        self, place: int, moves: Codes, beside: Codes | None, size: int, enough: int | None = None
    ) -> Conflicts:
        """Hold the moves of one machine against all steps, or until enough of them clash.

        `beside` is the state of the Transition Machine at each step, of so many, if it is another.
        """
        self.trials += 1
        return Conflicts(
            *self._asked.clashes(
                np.ascontiguousarray(moves).ravel(),
                moves.shape[1],
                self.answers[place],
                np.empty(0, np.int32) if beside is None else beside,
                size,
                self.columns.steps if enough is None else enough,
            )
        )
