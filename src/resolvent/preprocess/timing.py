"""Label timing: the labels that a machine has read when it predicts a step. Applied only here.

By the paper's definition of a resolvent, the machine reads l_1 … l_t before it answers (o_t, a_t);
by its printed samples and its supplement algorithm, l_0 … l_{t-1}. `labels_read` applies a timing
to traces, `LabelReader` to live steps. See docs/decisions/preprocess.md.
"""

from enum import StrEnum
from typing import Final

from resolvent.traces.symbols import Label
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes

NONE: Final = -1  # code of "no label is read" and "nothing is predicted" in a row


class LabelTiming(StrEnum):
    """The labels l that a machine has read when it predicts step t."""

    CURRENT = "current"
    """l_1 … l_t: the state is the initial one after a reset, so l_0 has no effect."""

    CURRENT_WITH_INITIAL = "current-with-initial"
    """l_0 … l_t: for worlds whose first observation matters, such as a T-maze's cue."""

    LAGGED = "lagged"
    """l_0 … l_{t-1}: as in the paper's printed samples."""

    @property
    def first(self) -> int:
        """The number of the first label that is read."""
        return 1 if self is LabelTiming.CURRENT else 0

    @property
    def lag(self) -> int:
        """Number of steps by which labels are read late: step t reads label t − lag."""
        return 1 if self is LabelTiming.LAGGED else 0

    @property
    def reads_at_reset(self) -> bool:
        """Whether the first label is read before the first step is predicted."""
        return self.first + self.lag == 0


def labels_read(traces: TraceSet, timing: LabelTiming) -> Codes:
    """Return for each step the code of the label read just before it; `NONE` if none is read."""
    read = traces.at_step(traces.label_codes)
    if timing is LabelTiming.LAGGED:
        read[1:] = read[:-1].copy()
    if timing is not LabelTiming.CURRENT_WITH_INITIAL:
        read[traces.offsets[:-1]] = NONE
    return read


class LabelReader:
    """Returns the label to read next in a live episode, given each label in turn."""

    def __init__(self, timing: LabelTiming) -> None:
        self.timing = timing
        self._last: Label | None = None

    def reset(self, label: Label) -> Label | None:
        """Return the label to read before the first step, if any, given the first label."""
        self._last = label
        return label if self.timing.reads_at_reset else None

    def step(self, label: Label) -> Label:
        """Return the label to read, given the label of the next observation."""
        previous, self._last = self._last, label
        if self.timing is not LabelTiming.LAGGED:
            return label
        if previous is None:
            raise RuntimeError("call reset() with the first label of the episode before step()")
        return previous
