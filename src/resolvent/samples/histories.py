"""Label histories: which label each step reads before it is answered, trace by trace.

They are the same for every machine inferred from the same traces, so samples
for different machines share them.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.samples.timing import LabelTiming, labels_read
from resolvent.traces.symbols import Label
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, Vocabulary


@dataclass(frozen=True, eq=False)
class Histories:
    """One row per step: the code of the label read just before it, or `NONE`.

    Trace i owns rows `offsets[i]:offsets[i + 1]`.
    """

    beta: Codes
    offsets: NDArray[np.int64]
    labels: Vocabulary[Label]

    @classmethod
    def of(cls, traces: TraceSet, timing: LabelTiming) -> "Histories":
        """Return the histories of traces under a timing."""
        return cls(labels_read(traces, timing), traces.offsets, traces.labels)

    @cached_property
    def tree(self) -> _core.HistoryTree:
        """The distinct histories as a tree, for the compiled core; built once."""
        return _core.build_history_tree(self.beta, self.offsets)

    @cached_property
    def reduced(self) -> dict[tuple[int, ...], "Histories"]:
        """What `remove_trivial` made of these, by the labels removed; for all who ask again."""
        return {}
