"""Which labels a machine has read when it answers a step. The one module that knows.

The paper's resolvent definition has the machine read l_1 … l_t before it answers
(o_t, a_t); its printed samples and its supplement algorithm have it read
l_0 … l_{t-1}. `labels_read` gives the column for many traces at once;
`LabelReader` does the same one step at a time, for whoever drives a live
environment. See docs/decisions/preprocess.md.
"""

from enum import StrEnum
from typing import Final

from resolvent.traces.symbols import Label
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes

NONE: Final = -1
"""In a column of codes: nothing is read, or nothing is answered, in this row."""


class LabelTiming(StrEnum):
    """Which labels l a machine has read when it answers for step t."""

    CURRENT = "current"
    """l_1 … l_t: the hidden state starts fresh at reset, so l_0 says nothing."""

    CURRENT_WITH_INITIAL = "current-with-initial"
    """l_0 … l_t: for worlds whose first observation already matters, such as a T-maze's cue."""

    LAGGED = "lagged"
    """l_0 … l_{t-1}: as the paper prints its samples."""

    @property
    def first(self) -> int:
        """The number of the first label that is read at all."""
        return 1 if self is LabelTiming.CURRENT else 0

    @property
    def lag(self) -> int:
        """How many steps late labels are read: step t reads label number t − lag."""
        return 1 if self is LabelTiming.LAGGED else 0

    @property
    def reads_at_reset(self) -> bool:
        """Whether the first label is read before the first step is answered."""
        return self.first + self.lag == 0


def labels_read(traces: TraceSet, timing: LabelTiming) -> Codes:
    """Return for each step the code of the label read just before it is answered.

    Each timing reads at most one label a step; `NONE` where it reads none.

    >>> from resolvent.traces import Trace
    >>> traces = TraceSet([Trace([0, 1, 2], ["a", "b", "c"], ["go", "go"], [0, 0])])
    >>> for timing in LabelTiming:
    ...     print(timing, labels_read(traces, timing).tolist())
    current [-1, 1]
    current-with-initial [0, 1]
    lagged [-1, 0]
    """
    current = traces.at_step(traces.label_codes)
    if timing is LabelTiming.CURRENT_WITH_INITIAL:
        return current
    read = current.copy()
    if timing is LabelTiming.LAGGED:
        read[1:] = current[:-1]
    read[traces.offsets[:-1]] = NONE
    return read


class LabelReader:
    """Tells, in a live episode, which label to read next: call it with each label in turn.

    >>> reader = LabelReader(LabelTiming.LAGGED)
    >>> reader.reset(frozenset("a")), reader.step(frozenset("b")), reader.step(frozenset("c"))
    (None, frozenset({'a'}), frozenset({'b'}))
    """

    def __init__(self, timing: LabelTiming) -> None:
        self.timing = timing
        self._last: Label | None = None

    def reset(self, label: Label) -> Label | None:
        """Take the label of an episode's first observation; return what to read, if anything."""
        self._last = label
        return label if self.timing.reads_at_reset else None

    def step(self, label: Label) -> Label:
        """Take the label of the observation a step led to; return what to read."""
        previous, self._last = self._last, label
        if self.timing is not LabelTiming.LAGGED:
            return label
        if previous is None:
            raise RuntimeError("call reset() with the first label of the episode before step()")
        return previous
