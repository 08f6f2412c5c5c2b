"""Cheap tests of whether noise may explain traces, without fitting machines to it.

Input: counts of a replay, or traces and machines. Output: the share of queries with deviating
outputs, and whether deviations depend on the past.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import geometric, log, log1p, log_of_sum
from resolvent.machines import Machine, Machines
from resolvent.preprocess.samples import Histories, output_samples
from resolvent.preprocess.timing import LabelTiming
from resolvent.replay.counts import ReplayCounts
from resolvent.traces import TraceSet

_SHARES: Final = np.linspace(0.05, 1.0, 20)
_RATES: Final = np.concatenate([geometric(0.002, 0.1, 20), np.linspace(0.12, 0.6, 25)])

_LOCALIZED_SHARE: Final = 0.3
"""Largest share of the queries that depends on memory in worlds without noise."""

_MIN_QUERIES: Final = 40
"""Number of repeated queries below which memory may matter to all of them."""

_MIN_SHARE: Final = 0.45
_MIN_NATS: Final = 6.0
_MAX_RATE: Final = 0.35
"""Maximum rate at which outputs vary by chance; above it, memory or a lottery explains them."""

_INDEPENDENT_AFTER: Final = 3
"""Number of steps after which random deviations are independent: a wrong observation affects two
consecutive steps."""

_PERSISTENCE, _STANDARD_DEVIATIONS = 1.5, 5.0
"""Deviations depend on the past if they follow each other by this factor more often than by chance,
and by this number of standard deviations more often."""

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class QueryNoise:
    """The `share` of the queries that have deviating outputs, and the `rate` of these outputs.

    `nats` is the log likelihood ratio against a share of at most three in ten, `nats_against_all`
    that against all queries. `queries` is the number of repeated queries.
    """

    share: float
    rate: float
    nats: float
    nats_against_all: float = 0.0
    queries: int = 0

    @property
    def is_homogeneous(self) -> bool:
        """Whether most queries deviate significantly, each of them rarely: as by chance."""
        return (
            self.queries >= _MIN_QUERIES
            and self.share >= _MIN_SHARE
            and self.nats >= _MIN_NATS
            and self.rate <= _MAX_RATE
        )

    @property
    def is_localized(self) -> bool:
        """Whether significantly few queries deviate, each of them often: as with memory."""
        return self.share <= _LOCALIZED_SHARE and self.nats_against_all >= _MIN_NATS

    def may_need_memory(self, rate: float) -> bool:
        """Return whether most queries may deviate, and more often than at this rate.

        Then traces cannot be compared without memory: in the log of a protocol, those that reach a
        rare state or avoid a sink differ from all others.
        """
        return self.queries < _MIN_QUERIES or (self.share >= _MIN_SHARE and self.rate > rate)


def query_noise(counts: ReplayCounts, *, by_state: bool, name: str | None = None) -> QueryNoise:
    """Estimate the share of a machine's queries with deviating outputs; by default of the first.

    With `by_state` outputs are compared in the same state, otherwise for the same query.
    """
    machine = counts.machines[name] if name else next(iter(counts.machines.values()))
    outputs = machine.known_outputs
    _, query = np.unique(outputs["query"], return_inverse=True)
    width = int(outputs["output"].max(initial=0)) + 1
    queries = int(query.max(initial=0)) + 1
    row = outputs["state"].astype(np.int64) * queries + query if by_state else query
    cells, cell = np.unique(row * width + outputs["output"], return_inverse=True)
    count = np.bincount(cell, outputs["count"]).astype(np.int64)
    starts = np.flatnonzero(np.diff(cells // width, prepend=-1))
    total, most = np.add.reduceat(count, starts), np.maximum.reduceat(count, starts)
    of_row = (cells // width)[starts] % queries
    # The first output of a row, which is a query or one in a state, cannot deviate.
    could_deviate = np.bincount(of_row, total - 1).astype(np.int64)
    deviating = np.bincount(of_row, total - most).astype(np.int64)
    return estimate_query_noise(could_deviate, deviating)


def estimate_query_noise(outputs: Counts, deviating: Counts) -> QueryNoise:
    """Estimate the share of the queries that have deviating outputs, and their rate.

    `outputs` is the number of outputs of each query that could deviate, `deviating` the number
    that do. In a random world every query deviates now and then; if memory is missing, some
    queries have several outputs and all others a single one.
    """
    if not len(outputs):
        return QueryNoise(0.0, 0.0, 0.0)
    queries = int(np.count_nonzero(outputs))
    (outputs, deviating), times = np.unique(
        np.stack([outputs, deviating]), axis=1, return_counts=True
    )
    by_rate = deviating[:, None] * log(_RATES) + (outputs - deviating)[:, None] * log1p(-_RATES)
    varying = by_rate[:, :, None] + log(_SHARES)
    constant = np.where((deviating == 0)[:, None], log(np.maximum(1 - _SHARES, 1e-300)), -np.inf)
    each = log_of_sum(varying, constant[:, None, :])  # row, rate, share
    likelihood = (times[:, None, None] * each).sum(0).T
    best = likelihood.max(1)
    at = int(np.argmax(best))
    rate, top = float(_RATES[int(np.argmax(likelihood[at]))]), float(best[at])
    localized = float(best[_SHARES <= _LOCALIZED_SHARE].max())
    return QueryNoise(float(_SHARES[at]), rate, top - localized, top - float(best[-1]), queries)


def deviations_persist(traces: TraceSet, machines: Machines, timing: LabelTiming) -> bool:
    """Return whether deviating outputs follow each other, as if the state were wrong.

    An output deviates if it is not the most frequent one of its query and state. The first machine
    with deviations decides, since its errors recur in the machines that read its states.
    """
    histories = Histories.of(traces, timing)
    by_machine = (_persist(traces, histories, machine) for machine in machines.values())
    return next((persist for persist in by_machine if persist is not None), False)


def _persist(traces: TraceSet, histories: Histories, machine: Machine) -> bool | None:
    """Return whether deviations of one machine are consecutive; None if there are none."""
    samples = output_samples(traces, histories, machine.predicts, digits=machine.digits)
    states = machine.replay(samples.beta, samples.offsets)
    outputs = max(len(samples.outputs), 1)
    query = samples.alpha.astype(np.int64)
    cells, cell, count = np.unique(
        (query * machine.states + states) * outputs + samples.output,
        return_inverse=True,
        return_counts=True,
    )
    _, row = np.unique(cells // outputs, return_inverse=True)
    most = np.zeros(row.max() + 1, np.int64)
    np.maximum.at(most, row, count)
    deviates = (count < most[row])[cell]
    if not deviates.any():
        return None
    varies = np.bincount(np.unique(query * outputs + samples.output) // outputs) > 1
    steps = np.flatnonzero(varies[samples.alpha] & (states >= 0))
    trace = np.searchsorted(samples.offsets, steps, side="right")
    later = np.searchsorted(steps, steps + _INDEPENDENT_AFTER)
    pair = np.flatnonzero(later < len(steps))
    pair = pair[trace[later[pair]] == trace[pair]]
    before, after = deviates[steps[pair]], deviates[steps[later[pair]]]
    if not before.any() or not after.any():
        return False
    both, share = int((before & after).sum()), float(after.mean())
    by_chance = float(before.sum()) * share
    deviation = sqrt(by_chance * (1 - share))
    return both > max(_PERSISTENCE * by_chance, by_chance + _STANDARD_DEVIATIONS * deviation)
