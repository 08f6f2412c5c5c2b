"""Noisy samples + a machine's moves → for each move, how sure it is where it leads."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.errors import ModelError
from resolvent.noise.likely import PART
from resolvent.samples import SampleSet
from resolvent.traces.vocabulary import Codes


@dataclass(frozen=True, eq=False)
class Rivals:
    """For each move, the likeliest other target, and how much less likely that is.

    `target` is [state, label], −1 where a move has no rival: where it is never read, where its
    label changes no state at all, or where there is one state alone. `log_odds` is
    the logarithm of how many times as likely the target is that the move has.
    """

    target: Codes
    log_odds: NDArray[np.float64]


def rivals(samples: SampleSet, transitions: Codes) -> Rivals:
    """Weigh each move of a machine against other targets, all other moves as they are.

    Traces that read the move are read anew with another target, the three that answers up to
    the next label speak for most, and all answers weighed as by `weigh`. Of more than
    200,000 rows a part of the traces is taken, so what is sure is surer still.

    >>> import numpy as np, resolvent as rs
    >>> from resolvent.samples import Histories, LabelTiming, output_samples
    >>> def told(key, end):
    ...     return rs.Trace(["a", "b", end], [None, key, None], ["go", "go"], [0, 0])
    >>> traces = rs.TraceSet([told("key", "c"), told("lamp", "d")] * 20)
    >>> histories = Histories.of(traces, LabelTiming.CURRENT)
    >>> samples = output_samples(traces, histories, "observation")
    >>> key, lamp = (samples.labels.code(frozenset({name})) for name in ("key", "lamp"))
    >>> moves = np.full((2, len(samples.labels)), -1, np.int32)
    >>> moves[0, [key, lamp]] = 1, 0
    >>> found = rivals(samples, moves)
    >>> int(found.target[0, key]), bool(found.log_odds[0, key] > 10)
    (0, True)
    """
    states, labels = transitions.shape
    if labels == 0:
        nowhere = np.full((states, 0), -1, np.int32)
        return Rivals(nowhere, np.zeros(nowhere.shape))
    try:
        target, log_odds = _core.rival_moves(
            samples.alpha,
            samples.output,
            samples.beta,
            samples.offsets,
            transitions=np.ascontiguousarray(transitions, np.int32).ravel(),
            labels=labels,
            part=PART,
        )
    except ValueError as wrong:
        raise ModelError(f"the moves do not fit the samples: {wrong}") from None
    return Rivals(target.reshape(states, labels), log_odds.reshape(states, labels))
