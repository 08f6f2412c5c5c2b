"""Samples for one machine, as columns: read a label (beta), answer an input (alpha).

Samples of different machines differ in what stands in the output column. An alpha is
an observation-action pair; its id is a position in `alpha_keys`, whose entries
are `observation code * number of actions + action code`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.samples.histories import Histories
from resolvent.traces.symbols import Label, Symbol
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import MAX_TABLE_SIZE, Codes, Vocabulary, codes_of, distinct_pairs

ObservationColumn = tuple[Vocabulary[Symbol], Codes]
"""What stands for the observation at each step; the supplement puts (o, q) here."""


@dataclass(frozen=True, slots=True, eq=False)
class SampleSet:
    """Rows "read `beta`, then answer `alpha` with `output`", trace after trace.

    Which label a row reads is in `histories`. Either half of a row may be
    `NONE`: reduction takes halves out and leaves the rows where they are.
    """

    alpha: Codes
    output: Codes
    histories: Histories
    alpha_keys: NDArray[np.int64]
    observations: Vocabulary[Symbol]
    actions: Vocabulary[Symbol]
    outputs: Vocabulary[Any]

    @property
    def beta(self) -> Codes:
        """The label that each row reads, or `NONE`."""
        return self.histories.beta

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where the rows of each trace begin, and where the last ones end."""
        return self.histories.offsets

    @property
    def labels(self) -> Vocabulary[Label]:
        """The labels behind the codes."""
        return self.histories.labels


def output_samples(
    traces: TraceSet,
    histories: Histories,
    predicts: str,
    *,
    observed: ObservationColumn | None = None,
    digits: int | None = None,
) -> SampleSet:
    """Make the samples of the machine that predicts a column: answer (o_t, a_t) with its value.

    The column "observation" stands for the next one, o_{t+1}. What `observed` says was
    seen takes the place of o_t. Values are compared as exact symbols, numbers after
    rounding to `digits` decimals if that is given.

    Paper: "Problem Reduction to DBMM inference".
    """
    outputs: Vocabulary[Any]
    if predicts == "observation":
        outputs = traces.observations
        output = traces.after_step(traces.observation_codes)
    else:
        outputs, output = traces.column(predicts)
    if digits is not None:
        numbers = rounded(outputs, digits)
        outputs = Vocabulary(sorted(set(numbers)))
        output = _core.recode(output, codes_of(numbers, outputs, -1))
    return _samples(
        traces,
        histories,
        observed=observed or (traces.observations, traces.at_step(traces.observation_codes)),
        output=output,
        outputs=outputs,
    )


def rounded(numbers: Iterable[Any], digits: int | None) -> list[float]:
    """Return numbers, rounded to `digits` decimals if that is given."""
    if digits is None:
        return list(numbers)
    return [round(number, digits) + 0.0 for number in numbers]


def _samples(
    traces: TraceSet,
    histories: Histories,
    *,
    observed: ObservationColumn,
    output: Codes,
    outputs: Vocabulary[Any],
) -> SampleSet:
    observations, observation_codes = observed
    size = len(observations) * len(traces.actions)
    if size <= MAX_TABLE_SIZE:  # an alpha's id is its key; beyond, only keys that occur get ids
        alpha = observation_codes * np.int32(len(traces.actions))
        alpha += traces.action_codes
        keys = np.arange(size, dtype=np.int64)
    else:
        bounds = len(observations), len(traces.actions)
        keys, alpha = distinct_pairs(observation_codes, traces.action_codes, *bounds)
    return SampleSet(
        alpha=alpha,
        output=output,
        histories=histories,
        alpha_keys=keys,
        observations=observations,
        actions=traces.actions,
        outputs=outputs,
    )
