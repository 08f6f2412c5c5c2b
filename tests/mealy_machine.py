"""Mealy machines as tables, for tests and benchmarks: drawn or explored, walked, compared.

An input is both the action and the label that is read after it; the output is the column to
predict. What was learned of a machine becomes a `Table` over the same inputs and outputs,
whoever learned it, and is then compared with the machine itself.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

import resolvent as rs

S = TypeVar("S", bound=Hashable)

SEEN = "nothing"
"""What is seen in a log: the same throughout."""


@dataclass(frozen=True, eq=False)
class Table:
    """Moves and outputs by state and input; −1 is what is not known."""

    moves: np.ndarray
    outputs: np.ndarray


@dataclass(frozen=True, eq=False)
class Mealy(Table):
    """A Mealy machine that begins in state 0; every state is reached and no two are the same.

    Inputs and outputs that are not named are called i0, i1 … and o0, o1 …
    """

    inputs: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.inputs:
            object.__setattr__(self, "inputs", tuple(f"i{i}" for i in range(self.moves.shape[1])))
        if not self.answers:
            numbered = tuple(f"o{i}" for i in range(self.outputs.max() + 1))
            object.__setattr__(self, "answers", numbered)

    @classmethod
    def drawn(cls, states: int, seed: int, *, inputs: int = 10, idle: int = 0) -> "Mealy":
        """Draw a machine with 2 to 10 outputs whose last `idle` inputs change no state."""
        random = np.random.default_rng(seed)
        while True:
            values = int(random.integers(2, 11))
            moves = random.integers(0, states, (states, inputs), dtype=np.int32)
            moves[:, inputs - idle :] = np.arange(states, dtype=np.int32)[:, None]
            outputs = random.integers(0, values, (states, inputs), dtype=np.int32)
            machine = cls(moves, outputs)
            if machine.is_minimal():
                return machine

    @classmethod
    def explored(
        cls, start: S, inputs: Sequence[str], respond: Callable[[S, str], tuple[S, str]]
    ) -> "Mealy":
        """Follow rules from a start to all that can be reached, and make equal states one."""
        numbers, ahead, told, rows = {start: 0}, [start], {}, []
        for state in ahead:
            row = []
            for one in inputs:
                following, answer = respond(state, one)
                if following not in numbers:
                    numbers[following] = len(ahead)
                    ahead.append(following)
                row.append((numbers[following], told.setdefault(answer, len(told))))
            rows.append(row)
        explored = np.array(rows, np.int32)
        names = (tuple(inputs), tuple(told))
        return cls(explored[..., 0], explored[..., 1], *names)._minimised()

    @property
    def states(self) -> int:
        """How many states it has."""
        return len(self.moves)

    def is_minimal(self) -> bool:
        """Whether all states are reached from the first, and all differ."""
        reached = np.zeros(self.states, bool)
        reached[0] = True
        while not reached[self.moves[reached]].all():
            reached[self.moves[reached]] = True
        return bool(reached.all()) and int(self._blocks().max()) == self.states - 1

    def walks(
        self, steps: int, seed: int, lengths: tuple[int, int] = (50, 100)
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the inputs and outputs of random walks, and where each walk begins.

        Each walk begins in state 0; its length is drawn between the two given. Walks of more
        steps begin with those of fewer.
        """
        of_lengths, of_inputs = (np.random.default_rng([seed, part]) for part in range(2))
        number = max(1, 2 * steps // sum(lengths))
        drawn = of_lengths.integers(lengths[0], lengths[1] + 1, number)
        offsets = np.concatenate([[0], np.cumsum(drawn)])
        given = of_inputs.integers(0, len(self.inputs), offsets[-1], dtype=np.int32)
        return given, self.told(self, given, offsets), offsets

    @staticmethod
    def told(table: Table, given: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Return what a table answers to walks: −1 from the first step on that it does not know."""
        # The last state is the one after a move that is not known, which leads nowhere else.
        unknown = np.full((1, table.moves.shape[1]), -1, np.int32)
        moves, outputs = np.vstack([table.moves, unknown]), np.vstack([table.outputs, unknown])
        lengths = np.diff(offsets)
        answers = np.empty_like(given)
        state = np.zeros(len(lengths), np.int32)
        for step in range(int(lengths.max())):
            going = np.flatnonzero(lengths > step)
            rows = offsets[going] + step
            answers[rows] = outputs[state[going], given[rows]]
            state[going] = moves[state[going], given[rows]]
        return answers

    def traces(self, steps: int, seed: int, lengths: tuple[int, int] = (50, 100)) -> rs.TraceSet:
        """Walk through the machine at random, and return what `rs.read_log` reads of it."""
        return self.as_traces(*self.walks(steps, seed, lengths))

    def as_traces(self, given: np.ndarray, told: np.ndarray, offsets: np.ndarray) -> rs.TraceSet:
        """Return walks as `rs.read_log` reads them; the output's column is called "output"."""
        walks = len(offsets) - 1
        labels = [frozenset(), *(frozenset({name}) for name in self.inputs)]
        read = np.insert(given + 1, offsets[:-1], 0)  # before the first input there is none
        return rs.TraceSet.from_columns(
            ([SEEN], np.zeros(len(read), np.int32)),
            (labels, read.astype(np.int32)),
            (list(self.inputs), given),
            columns={"output": (list(self.answers), told)},
            offsets=offsets,
            terminated=np.zeros(walks, bool),
            truncated=np.zeros(walks, bool),
        )

    def visits(self, given: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Count how often walks take each input in each state."""
        codes = np.arange(self.moves.size, dtype=np.int32).reshape(self.moves.shape)
        taken = self.told(Table(self.moves, codes), given, offsets)
        return np.bincount(taken, minlength=self.moves.size).reshape(self.moves.shape)

    def table_of(self, machine: rs.Machine) -> Table:
        """Return an inferred machine as a table over this machine's inputs and outputs."""
        codes = {name: code for code, name in enumerate(self.answers)}
        (seen,) = machine.observations
        moves = np.full((machine.states, len(self.inputs)), -1, np.int32)
        outputs = np.full_like(moves, -1)
        for number, name in enumerate(self.inputs):
            for state in range(machine.states):
                reached = machine.step(state, {name})
                answer = machine.output(state, seen, name)
                moves[state, number] = -1 if reached is rs.UNSEEN else reached
                outputs[state, number] = -1 if answer is rs.UNSEEN else codes[answer]
        return Table(moves, outputs)

    def is_found(self, found: rs.Machine | Table) -> bool:
        """Whether what was learned has the same states, moves and outputs, all of them."""
        table = self.table_of(found) if isinstance(found, rs.Machine) else found
        if len(table.moves) != self.states:
            return False
        same = np.full(self.states, -1)
        same[0] = 0
        ahead = [0]
        for state in ahead:
            if (self.outputs[state] != table.outputs[same[state]]).any():
                return False
            for true, reached in zip(self.moves[state], table.moves[same[state]], strict=True):
                if same[true] < 0:
                    same[true] = reached
                    ahead.append(int(true))
                if reached < 0 or same[true] != reached:
                    return False
        return len(set(same.tolist())) == self.states

    def wrong_share(
        self, found: rs.Machine | Table, walks: tuple[np.ndarray, np.ndarray, np.ndarray]
    ) -> float:
        """Return the share of the steps of fresh walks that are not predicted rightly.

        A step that is not known is wrong, and so are all that follow it in its walk: the state
        is not known any more.
        """
        table = self.table_of(found) if isinstance(found, rs.Machine) else found
        given, told, offsets = walks
        return float(np.mean(self.told(table, given, offsets) != told))

    def _blocks(self) -> np.ndarray:
        """Number the states so that those which no inputs tell apart have the same number."""
        _, blocks = np.unique(self.outputs, axis=0, return_inverse=True)
        while True:
            finer = np.column_stack([blocks, blocks[self.moves]])
            _, split = np.unique(finer, axis=0, return_inverse=True)
            if split.max() == blocks.max():
                return split
            blocks = split

    def _minimised(self) -> "Mealy":
        """Make equal states one, numbered as they are first reached."""
        blocks = self._blocks()
        _, first = np.unique(blocks, return_index=True)
        order = np.argsort(first)
        rank: Any = np.empty_like(order)
        rank[order] = np.arange(len(order))
        kept = first[order]
        moves = rank[blocks[self.moves[kept]]].astype(np.int32)
        return Mealy(moves, self.outputs[kept], self.inputs, self.answers)
