"""Other readings of traces: what may have been meant by what was recorded."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from resolvent.noise import Doubt
from resolvent.options import Options
from resolvent.result import Found
from resolvent.samples import LabelTiming
from resolvent.senses import Senses
from resolvent.traces import TraceSet


@dataclass(frozen=True)
class Reading:
    """Traces as they may have been meant, and how likely they were then recorded as they are.

    Attributes:
        kind: What is taken to be noisy, as `Noise` calls it: "labels", "starts".
        traces: All traces as machines are to read them, in the order given.
        senses: What is to be done to raw steps from now on.
        log_evidence: The logarithm of how likely the recorded traces are, given these: what it
            costs to say which labels lie, or where an episode starts.
        noise: How much noise of which kind was found, as shares: for `result.noise`.
        timing: When machines are to read these labels; None for as the options say.
        doubt: Why states are not certain in traces as they are recorded.
    """

    kind: str
    traces: TraceSet
    senses: Senses
    log_evidence: float
    noise: Mapping[str, float] = field(default_factory=dict)
    timing: LabelTiming | None = None
    doubt: Doubt = field(default_factory=Doubt)


Hypothesis: TypeAlias = Callable[[TraceSet, Options, Senses, Found, float | None], Reading | None]
"""Reads traces in another way, given the most likely machines for them as they are recorded,
and the seconds that are left.

None if there is no such noise in them.
"""
