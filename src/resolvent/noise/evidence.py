"""Noisy answers + a machine's moves → how likely they are, and how noisy."""

from dataclasses import dataclass

import numpy as np

from resolvent import _core
from resolvent.errors import ModelError
from resolvent.samples import SampleSet
from resolvent.traces.vocabulary import Codes


@dataclass(frozen=True)
class NoisyEvidence:
    """How likely answers are, and the noise under which they are.

    Rows are pairs of a state and a question. `share` of the answers of a row have nothing
    to do with its main answer; the larger `strength` is, the less rows differ in that.
    `noise` is the share of all answers that are not the most frequent one of their row.
    """

    log_evidence: float
    noise: float
    strength: float
    share: float


def weigh(samples: SampleSet, transitions: Codes) -> NoisyEvidence:
    """Return how likely the answers of samples are if a machine with these moves gave them.

    `transitions` is [state, label], −1 where a label is never read. The logarithm is that
    of the marginal likelihood of all answers, main answers and their shares summed out, plus
    that of the moves; docs/decisions/noise.md says which prior they have.

    >>> import numpy as np, resolvent as rs
    >>> from resolvent.samples import Histories, LabelTiming, output_samples
    >>> step = lambda seen: rs.Trace(["a", "b", seen], [None, "x", None], ["go", "go"], [0, 0])
    >>> traces = rs.TraceSet([step("c")] * 9 + [step("d")])
    >>> histories = Histories.of(traces, LabelTiming.CURRENT)
    >>> samples = output_samples(traces, histories, "observation")
    >>> one = weigh(samples, np.zeros((1, len(samples.labels)), np.int32))
    >>> one.noise
    0.05
    """
    if transitions.ndim != 2 or transitions.shape[1] != len(samples.labels):
        raise ModelError(
            f"transitions has the shape {transitions.shape}: give one row for each state, and in "
            f"it one column for each of the {len(samples.labels)} labels"
        )
    try:
        found = _core.weigh_noisy_machine(
            samples.alpha,
            samples.output,
            samples.beta,
            samples.offsets,
            transitions=np.ascontiguousarray(transitions, np.int32).ravel(),
            labels=transitions.shape[1],
        )
    except ValueError as wrong:
        raise ModelError(f"the moves do not fit the samples: {wrong}") from None
    return NoisyEvidence(*found)
