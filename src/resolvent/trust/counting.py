"""What a replay shows of a machine → the same in the machine's own codes, one column each."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from resolvent.machines import Machine
from resolvent.replay import Replay, in_machine_codes
from resolvent.replay.shown import Rows
from resolvent.traces.vocabulary import Codes, codes_of


class _Columns:
    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            np.array_equal(getattr(self, one.name), getattr(other, one.name))
            for one in fields(self)  # type: ignore[arg-type]
        )

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class AnswersSeen(_Columns):
    """One row per (state, question, output) that the traces show, sorted by those.

    The witness is the place with the fewest steps before it, then the first trace.
    """

    state: Codes
    question: NDArray[np.int64]
    output: Codes
    count: NDArray[np.int64]
    trace: NDArray[np.int64]
    step: NDArray[np.int64]

    @classmethod
    def of(cls, machine: Machine, shown: Replay) -> "AnswersSeen":
        """Take the answers that a replay shows, wherever state, question and output are known."""
        rows = shown.machines[machine.kind].answers
        states = shown.sizes.get("transition", 1)
        coded = in_machine_codes(machine, rows, shown.alphabets, states)
        known = (rows["state"] >= 0) & (coded.question >= 0) & (coded.output >= 0)
        rows, question, output = rows[known], coded.question[known], coded.output[known]
        order = np.lexsort((output, question, rows["state"]))
        rows = rows[order]
        return cls(rows["state"].copy(), question[order], output[order], *_witnessed(rows))


@dataclass(frozen=True, eq=False)
class MovesSeen(_Columns):
    """One row per (state, label, target) that the traces show, sorted by those."""

    state: Codes
    label: Codes
    target: Codes
    count: NDArray[np.int64]
    trace: NDArray[np.int64]
    step: NDArray[np.int64]

    @classmethod
    def of(cls, machine: Machine, shown: Replay) -> "MovesSeen":
        """Take the transitions that a replay shows, wherever label and target are known."""
        rows = shown.machines[machine.kind].moves
        label = codes_of(shown.alphabets.labels, machine.labels, -1)[rows["label"]]
        known = (label >= 0) & (rows["output"] >= 0)
        rows, label = rows[known], label[known]
        order = np.lexsort((label, rows["state"]))
        rows = rows[order]
        return cls(rows["state"].copy(), label[order], rows["output"].copy(), *_witnessed(rows))


def _witnessed(
    rows: Rows,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    step = rows["early_step"].astype(np.int64)
    return rows["count"].copy(), rows["early_trace"].copy(), step
