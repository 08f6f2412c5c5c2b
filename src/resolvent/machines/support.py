"""How often traces showed what a machine knows."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from resolvent.machines.columns import no_numbers
from resolvent.machines.uncertainty import AlternativeTransitions


@dataclass(frozen=True, eq=False)
class Support:
    """How often the traces showed each entry of a machine's tables.

    Kept apart from the machine: repeating the traces changes this and nothing else.
    `constants` are the totals of constant questions, `asked` the counts by state;
    these are empty where only the totals are known. `outputs` count how often a question
    was asked in a state, whatever the answer. `rivals` say, of a machine that was found
    despite noise, how sure it is where each move leads.
    """

    transitions: NDArray[np.int64]
    outputs: NDArray[np.int64]
    constants: NDArray[np.int64]
    asked: NDArray[np.int64] = field(default_factory=no_numbers)
    rivals: AlternativeTransitions | None = None
