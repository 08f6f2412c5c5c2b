"""Whether labels have anything to do with what is seen and done."""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from resolvent.diagnosis.steps import Steps
from resolvent.traces import TraceSet

DEVIATIONS = 5.0
"""By so many standard deviations labels may seem to depend on something by chance."""

_SEED = 0


def labels_at_random(steps: Steps) -> bool:
    """Whether labels depend neither on the observation beside them nor on the step before."""
    traces = steps.traces
    after = traces.after_step(traces.label_codes)
    beside = traces.after_step(traces.observation_codes)
    before = traces.at_step(traces.observation_codes)
    columns = (beside, before, traces.action_codes, steps.question)
    return all(independent(after, column) for column in columns)


def independent(one: NDArray[np.int32], other: NDArray[np.int32]) -> bool:
    """Whether two columns may be independent, by Pearson's chi-square.

    >>> codes = np.arange(1000, dtype=np.int32)
    >>> independent(codes % 2, codes % 3), independent(codes % 2, codes % 4)
    (True, False)
    """
    rows, row = np.unique(one, return_inverse=True)
    columns, column = np.unique(other, return_inverse=True)
    cells, count = np.unique(row * len(columns) + column, return_counts=True)
    in_row, in_column = np.bincount(row), np.bincount(column)
    by_chance = in_row[cells // len(columns)] * in_column[cells % len(columns)] / len(row)
    excess = float((count**2 / by_chance).sum()) - len(row)
    freedom = (len(rows) - 1) * (len(columns) - 1)
    return excess <= freedom + DEVIATIONS * sqrt(2 * freedom)


def shuffled_labels(traces: TraceSet) -> TraceSet:
    """Return the traces with all their labels in another order, "no event" among them."""
    codes = np.random.default_rng(_SEED).permutation(traces.label_codes)
    return TraceSet.from_columns(
        (traces.observations, traces.observation_codes),
        (traces.labels, codes),
        (traces.actions, traces.action_codes),
        (traces.rewards, traces.reward_codes),
        offsets=traces.offsets,
        terminated=traces.terminated,
        truncated=traces.truncated,
    )
