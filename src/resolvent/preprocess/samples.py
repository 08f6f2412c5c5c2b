"""Samples for one machine, as columns: rows that read a label (beta) and answer an input (alpha).

Input: `TraceSet`. Output: `Histories`, shared by all machines of the same traces, and a
`SampleSet` for each machine. An alpha is an observation–action pair; its id is an index into
`alpha_keys`, whose entries are `observation code * number of actions + action code`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.errors import ModelError
from resolvent.preprocess.timing import LabelTiming, labels_read
from resolvent.traces.symbols import Label, Symbol
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import MAX_TABLE_SIZE, Codes, Vocabulary, codes_of, distinct_pairs

ObservationColumn = tuple[Vocabulary[Symbol], Codes]  # the observation, or its supplement


@dataclass(frozen=True, eq=False)
class Histories:
    """One row per step: the code of the label read just before it, or `NONE`.

    The rows of trace i are `offsets[i]:offsets[i + 1]`.
    """

    beta: Codes
    offsets: NDArray[np.int64]
    labels: Vocabulary[Label]

    @classmethod
    def of(cls, traces: TraceSet, timing: LabelTiming) -> "Histories":
        """Return the label histories of traces under a timing."""
        return cls(labels_read(traces, timing), traces.offsets, traces.labels)

    @cached_property
    def tree(self) -> _core.HistoryTree:
        """The distinct histories as a tree, for the C++ core; built once."""
        return _core.build_history_tree(self.beta, self.offsets)

    @cached_property
    def reduced(self) -> dict[tuple[int, ...], "Histories"]:
        """Cache of `remove_trivial`: the histories by the labels removed."""
        return {}


@dataclass(frozen=True, slots=True, eq=False)
class SampleSet:
    """Rows "read `beta`, then answer `alpha` with `output`", trace after trace.

    Either half of a row may be `NONE`: reduction blanks out halves and keeps the rows.
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
        """The code of the label that each row reads, or `NONE`."""
        return self.histories.beta

    @property
    def offsets(self) -> NDArray[np.int64]:
        """The first row of each trace, and the number of rows."""
        return self.histories.offsets

    @property
    def labels(self) -> Vocabulary[Label]:
        """The labels by code."""
        return self.histories.labels


def output_samples(
    traces: TraceSet,
    histories: Histories,
    predicts: str,
    *,
    observed: ObservationColumn | None = None,
    digits: int | None = None,
) -> SampleSet:
    """Return the samples of the machine that predicts a column: answer (o_t, a_t) with its value.

    The column "observation" means the next one, o_{t+1}. `observed` replaces o_t. Values are
    compared exactly, numbers after rounding to `digits` decimals if that is set.

    Paper: "Problem Reduction to DBMM inference".
    """
    outputs, output = traces.column(predicts)
    if digits is not None:
        numbers = rounded(outputs, digits)
        outputs = Vocabulary(sorted(set(numbers)))
        output = _core.recode(output, codes_of(numbers, outputs, -1))
    observations, codes = observed or (
        traces.observations,
        traces.at_step(traces.observation_codes),
    )
    size = len(observations) * len(traces.actions)
    if size <= MAX_TABLE_SIZE:  # an alpha's id is its key; beyond, only keys that occur get ids
        alpha = codes * np.int32(len(traces.actions))
        alpha += traces.action_codes
        keys = np.arange(size, dtype=np.int64)
    else:
        sizes = len(observations), len(traces.actions)
        keys, alpha = distinct_pairs(codes, traces.action_codes, *sizes)
    return SampleSet(alpha, output, histories, keys, observations, traces.actions, outputs)


def supplement(traces: TraceSet, states: Codes) -> ObservationColumn:
    """Pair the observation at every step with the state of the Transition Machine there.

    If the next observation depends on history, the reward often depends on the same history. A
    Reward Machine that reads (observation, TM state) need not track it. `states` has the state at
    each step, −1 if a replay found none.

    Paper: StateSupp, "Observation Supplement Algorithm". Departure: the label timing determines
    the labels read, not always up to l_{t-1}.
    """
    if np.any(states < 0):
        trace, step = traces.locate(int(np.argmax(states < 0)))
        raise ModelError(
            f"trace {trace}, step {step}: the transition machine has no state for the labels "
            f"up to here; infer it from these traces"
        )
    n_states = int(states.max(initial=0)) + 1
    observed = traces.at_step(traces.observation_codes)
    keys, codes = distinct_pairs(observed, states, len(traces.observations), n_states)
    observation_codes, state_of_pair = np.divmod(keys, n_states)
    observations = traces.observations.values(observation_codes)
    return Vocabulary(zip(observations, state_of_pair.tolist(), strict=True)), codes


def rounded(numbers: Iterable[Any], digits: int | None) -> list[float]:
    """Return numbers, rounded to `digits` decimals if that is set."""
    if digits is None:
        return list(numbers)
    return [round(number, digits) + 0.0 for number in numbers]


SampleBuilder: TypeAlias = Callable[[TraceSet, Histories], SampleSet]
"""Returns the samples for one machine, without supplement.

The supplement is a function of the label history, so it neither adds nor removes contradictions.
"""


class ContradictoryRows(Exception):  # noqa: N818
    """Two rows with the same label history and α-input, but different outputs.

    No deterministic machine explains both. It is the first such pair: by label history in shortlex
    order, then by α-input, then by row.
    """

    def __init__(self, first: int, second: int) -> None:
        super().__init__(first, second)
        self.first, self.second = first, second


def find_contradiction(samples: SampleSet) -> ContradictoryRows | None:
    """Return the first contradiction among the samples, or None if a machine can explain them."""
    rows = _core.find_conflict(samples.histories.tree, samples.alpha, samples.output)
    return None if rows is None else ContradictoryRows(*rows)
