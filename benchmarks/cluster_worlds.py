"""Logs of Mealy machines that are drawn, as large as one likes, for measuring what a pass costs."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from resolvent.preprocess.timing import LabelTiming
from resolvent.replay.coded_shard import Alphabets
from resolvent.replay.replaying import MachineTable, MachineTables

MILLION = 1_000_000
LENGTH = 100
"""Steps of an episode."""


@dataclass(frozen=True)
class World:
    """A Mealy machine that is drawn, and logs of it: files of a million steps, if not told."""

    states: int
    inputs: int

    @property
    def moves(self) -> np.ndarray:
        """Next states by state and input."""
        return np.random.default_rng(1).integers(self.states, size=(self.states, self.inputs))

    @property
    def rows(self) -> int:
        """Answers that a replay tells apart, and as many moves: one for each state and input."""
        return self.states * self.inputs

    def write(self, folder: Path, number: int, steps: int = MILLION) -> None:
        """Write one file, a row group, unless it is there."""
        path = folder / f"log-{number:05}.parquet"
        if path.exists():
            return
        random = np.random.default_rng(number)
        runs = steps // LENGTH
        given = random.integers(self.inputs, size=(LENGTH, runs))
        told = np.random.default_rng(2).integers(4, size=(self.states, self.inputs))
        moves, state, answers = self.moves, np.zeros(runs, np.int64), np.empty_like(given)
        for step in range(LENGTH):
            answers[step] = told[state, given[step]]
            state = moves[state, given[step]]
        names = pa.array([f"input-{one}" for one in range(self.inputs)])
        given_codes = pa.array(given.T.ravel().astype(np.int32))
        table = pa.table(
            {
                "run": np.repeat(np.arange(number * runs, (number + 1) * runs), LENGTH),
                "time": np.arange(number * steps, (number + 1) * steps) * 1000
                + random.integers(1000, size=steps),
                "input": pa.DictionaryArray.from_arrays(given_codes, names).cast(pa.string()),
                "answer": answers.T.ravel(),
            }
        )
        pq.write_table(table, path, compression="zstd", row_group_size=steps)

    def folder(self, under: Path, files: int, steps: int = MILLION) -> Path:
        """Write files, and return the folder they lie in."""
        folder = under / f"{self.states}x{self.inputs}-{files}-{steps}"
        folder.mkdir(exist_ok=True, parents=True)
        for number in range(files):
            self.write(folder, number, steps)
        return folder

    def tables(self, alphabets: Alphabets) -> MachineTables:
        """Return the machine as the core replays it; what is read before any input moves nobody."""
        moves = np.empty((self.states, len(alphabets.labels)), np.int32)
        for code, label in enumerate(alphabets.labels):
            moves[:, code] = np.arange(self.states)
            for name in label:
                moves[:, code] = self.moves[:, int(name.removeprefix("input-"))]
        column = alphabets.column_number("answer")
        table = MachineTable("answer", moves.ravel(), self.states, column, supplemented=False)
        return MachineTables((table,), LabelTiming.CURRENT)
