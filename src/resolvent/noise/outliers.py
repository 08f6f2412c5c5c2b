"""Find outliers: traces from another world, with shuffled columns, or spliced from several.

The outputs of an outlier deviate much more often than the noise of the other traces explains.

Input: machines that explain most traces, and these. Output: for each trace whether it is one.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import log, log1p, log_gamma
from resolvent.machines import Machines, machines_of
from resolvent.replay.replaying import states_at_steps
from resolvent.replay.steps import StepQueries, step_queries
from resolvent.traces import TraceSet

Counts = NDArray[np.int64]

_RISK: Final = 0.01
"""Probability that any trace at all is excluded though nothing is wrong with it."""

_OTHER_TRACES: Final = 2
"""Number of other traces that must have a query before an output for it can deviate."""

_PRIOR_COUNT: Final = 50.0
"""Weight, in outputs, of the overall rate of deviations in the estimate for one query."""

_TYPICAL_SHARE: Final = 0.9
"""Share of the traces, those with the least deviations, from which dispersion is estimated."""

_MAX_ROUNDS: Final = 10
"""Maximum number of rounds in which outliers and the rates of the other traces are estimated."""


@dataclass(frozen=True, eq=False)
class OutlierScores:
    """The deviation of the outputs of each trace.

    `outputs` is the number of outputs that could deviate, `deviating` the number that do, for the
    most informative machine. `nats` is the log likelihood ratio of a separate rate of deviations
    against that of the other traces; above `threshold`, the trace is an outlier. `surprise` is the
    negative log likelihood of all outputs that most other traces contradict, even a single one.
    """

    outputs: Counts
    deviating: Counts
    nats: NDArray[np.float64]
    surprise: NDArray[np.float64]
    threshold: float

    @property
    def are_outliers(self) -> NDArray[np.bool_]:
        """For each trace, whether it is significantly an outlier."""
        return self.nats > self.threshold


def score_outliers(machines: Machines, traces: TraceSet, *, by_state: bool = True) -> OutlierScores:
    """Compare the outputs of each trace with those of the other traces in the same states.

    An output deviates if most other traces have another one; a query of fewer than two others is
    uninformative. The rate of deviations may differ from query to query; that of an outlier is
    uniformly distributed. Without `by_state`, states are ignored: for unreliable machines.
    """
    if by_state:
        queries = step_queries(machines, traces, states_at_steps(machines, traces))
    else:  # later machines read states of the first
        first = machines_of([next(iter(machines.values()))], machines.timing)
        one_state = {name: np.zeros(traces.steps, np.int32) for name in first}
        queries = step_queries(first, traces, one_state)
    threshold = log(max(len(traces), 1) * len(queries) / _RISK)
    scores = [_score_for_machine(steps, traces, threshold) for steps in queries.values()]
    best = np.argmax([score.nats for score in scores], axis=0)
    columns = zip(*((score.outputs, score.deviating, score.nats) for score in scores), strict=True)
    outputs, deviating, nats = (
        np.array(column)[best, np.arange(len(traces))] for column in columns
    )
    surprise = np.sum([score.surprise for score in scores], axis=0)
    return OutlierScores(outputs, deviating, nats, surprise, threshold)


def _score_for_machine(steps: StepQueries, traces: TraceSet, threshold: float) -> OutlierScores:
    trace = traces.trace_of_step
    queries = int(steps.queries.max(initial=0)) + 1
    row, row_total = _count(steps.states.astype(np.int64) * queries + steps.queries)
    cell, cell_total = _count(row * (len(steps.machine.outputs) + 1) + steps.outputs)
    own_row, own_row_total = _count(trace * len(row_total) + row)
    own_cell, own_cell_total = _count(trace * len(cell_total) + cell)
    other_rows = row_total[row] - own_row_total[own_row]
    same_outputs = cell_total[cell] - own_cell_total[own_cell]
    traces_of_row = np.bincount(np.unique(trace * len(row_total) + row) % len(row_total))
    informative = traces_of_row[row] > _OTHER_TRACES
    # If just one other trace has a row, either may be wrong.
    against = 2 * same_outputs < other_rows
    deviates = informative & against
    # Deviations of a row in other traces.
    elsewhere = np.bincount(row, deviates)[row] - np.bincount(own_row, deviates)[own_row]
    outputs = np.bincount(trace, informative, len(traces)).astype(np.int64)
    deviating = np.bincount(trace, deviates, len(traces)).astype(np.int64)
    own_rate = np.array([*map(_log_of_rate, outputs.tolist(), deviating.tolist())])
    are_outliers = np.zeros(len(traces), bool)
    for _ in range(_MAX_ROUNDS):
        overall = (deviating[~are_outliers].sum() + 0.5) / (outputs[~are_outliers].sum() + 1.0)
        chance = (elsewhere + _PRIOR_COUNT * overall) / (other_rows + _PRIOR_COUNT)
        chance = np.clip(chance, 1e-9, 0.5)
        likelihood = np.where(deviates, log(chance), log1p(-chance))
        as_others = np.bincount(trace, np.where(informative, likelihood, 0.0))
        expected = np.bincount(trace, np.where(informative, chance, 0.0))
        variance = np.bincount(trace, np.where(informative, chance * (1 - chance), 0.0))
        # If all traces differ more than by chance, an outlier has to differ even more.
        deviation = np.sort((deviating - expected) ** 2 / np.maximum(variance, 1e-9))
        dispersion = deviation[: max(int(_TYPICAL_SHARE * len(deviation)), 1)].mean()
        nats = np.where(deviating > expected, (own_rate - as_others) / max(dispersion, 1.0), 0.0)
        before, are_outliers = are_outliers, nats > threshold
        if np.array_equal(are_outliers, before):
            break
    surprise: NDArray[np.float64] = np.bincount(
        trace, np.where(against, -log(chance), 0.0), len(traces)
    ).astype(np.float64)
    return OutlierScores(outputs, deviating, nats, surprise, threshold)


@dataclass(frozen=True, eq=False)
class UnexplainedTraces:
    """The traces that machines without noise do not explain.

    `outputs` and `wrong` count the outputs of each, and `first` is its first wrong step. `nats` is
    the log likelihood ratio of outliers among exact traces against rare noise in all traces.
    """

    numbers: Counts
    outputs: Counts
    wrong: Counts
    first: Counts
    nats: float


def unexplained_traces(machines: Machines, traces: TraceSet) -> UnexplainedTraces:
    """Return the traces that machines without noise fail to explain, and the odds of outliers."""
    queries = step_queries(machines, traces, states_at_steps(machines, traces))
    trace = traces.trace_of_step
    is_predicted, is_wrong = np.zeros((2, len(trace)), bool)
    for steps in queries.values():
        # A query that only one trace has in a state says nothing about this trace.
        predicted = steps.machine.predict(steps.states, steps.queries, generalized=False)
        is_predicted |= predicted >= 0
        is_wrong |= (predicted >= 0) & (predicted != steps.outputs)
    outputs = np.bincount(trace, is_predicted, len(traces)).astype(np.int64)
    wrong = np.bincount(trace, is_wrong, len(traces)).astype(np.int64)
    numbers = np.flatnonzero(wrong)
    at = np.flatnonzero(is_wrong)
    first = at[np.unique(trace[at], return_index=True)[1]] - traces.offsets[numbers]
    outputs_of, wrong_of = outputs[numbers], wrong[numbers]
    by_noise = _log_of_rate(int(outputs.sum()), int(wrong.sum()))
    by_outliers = sum(map(_log_of_rate, outputs_of.tolist(), wrong_of.tolist()))
    by_outliers += _log_of_rate(len(traces), len(numbers))
    return UnexplainedTraces(numbers, outputs_of, wrong_of, first, by_outliers - by_noise)


def _log_of_rate(trials: int, deviations: int) -> float:
    """Return the log likelihood of deviations in these trials, any rate being as likely."""
    return log_gamma(deviations + 1) + log_gamma(trials - deviations + 1) - log_gamma(trials + 2)


def _count(values: Counts) -> tuple[Counts, Counts]:
    """Return the index of each value among the distinct ones, and the counts of these."""
    return np.unique(values, return_inverse=True, return_counts=True)[1:]
