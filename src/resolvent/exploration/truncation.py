"""Episodes that were cut → whether the environment makes an end of a step, and calls it a cut."""

from typing import Final

import numpy as np

from resolvent.control.planning.situations import situation_text
from resolvent.exploration.buffer import CUT, Buffer
from resolvent.exploration.tables import QueriedSteps, TransitionTables
from resolvent.traces.symbols import symbol_text
from resolvent.wording import amount

OFTEN: Final = 3
"""So many times an episode was cut after a step, and never went on."""


def always_truncated(tables: TransitionTables | None, log: Buffer) -> str | None:
    """Say after which step of a situation every episode was cut, if there is one.

    A limit on the length of episodes cuts them after as many steps, which is no such step.
    """
    cut = np.flatnonzero(np.frombuffer(log.ends, np.int8) == CUT)
    if tables is None or len(cut) < OFTEN:
        return None
    columns, tables = log.columns(), tables.for_labels(len(log.labels))
    steps = QueriedSteps.of_columns(tables, columns)
    states = [steps.walk(one) for one in tables.moves]
    key = steps.question.astype(np.int64)
    for size, state in zip(tables.sizes, states, strict=True):
        key = key * (size + 1) + state + 1
    _, first, kind = np.unique(key, return_index=True, return_inverse=True)
    last, lengths = columns.offsets[1:][cut] - 1, np.diff(columns.offsets)[cut]
    times, cuts = np.bincount(kind), np.bincount(kind[last], minlength=len(first))
    for one in np.flatnonzero((cuts == times) & (cuts >= OFTEN)).tolist():
        if len(np.unique(lengths[kind[last] == one])) > 1:
            step = int(first[one])
            seen = log.observations.values[int(columns.observations_before[step])]
            where = situation_text((seen, *(int(state[step]) for state in states)))
            done = symbol_text(log.actions[int(columns.actions[step])])
            return f"{done} in {where} ({amount(int(cuts[one]), 'episode')})"
    return None
