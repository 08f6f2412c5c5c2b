"""Steps of traces → what is seen after each label, so that nothing is asked that cannot come up."""

import numpy as np
from numpy.typing import NDArray

from resolvent.replay import StepsAsked
from resolvent.traces import Label, Symbol
from resolvent.trust.separation import question_of


class SeenAfter:
    """Which observations traces show while a label is the last that they read.

    Labels that change nothing are left out. In a world where every place has a label of its
    own, that is one place for each.
    """

    def __init__(self, asked: StepsAsked, offsets: NDArray[np.int64]) -> None:
        machine, labels = asked.machine, len(asked.machine.labels)
        counts = np.ones(labels + 1, bool)  # the last stands for all that are unknown
        counts[list(machine.trivial)] = False
        read = np.minimum(asked.labels, labels)
        fresh = (read >= 0) & counts[read]
        steps = np.arange(len(read))
        last = np.maximum.accumulate(np.where(fresh, steps, -1))
        begins = np.repeat(offsets[:-1], np.diff(offsets))
        label = np.where(last >= begins, read[last], -1).astype(np.int64)
        known = (asked.questions >= 0) & (label < labels)
        actions = max(len(machine.actions), 1)
        pairs = np.stack([label[known], asked.questions[known] // actions])
        self._seen: dict[Label | None, set[Symbol]] = {}
        for code, observation in np.unique(pairs, axis=1).T.tolist():
            which = machine.labels[code] if code >= 0 else None
            symbol = question_of(machine, observation * actions).observation
            self._seen.setdefault(which, set()).add(symbol)

    def __call__(self, label: Label | None, observation: Symbol) -> bool:
        """Whether an observation was ever seen while this label was the last one read."""
        return observation in self._seen.get(label, ())
