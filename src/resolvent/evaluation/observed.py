"""Express the replay of traces in a machine's own codes, with a count and a first location.

Input: a replay or a corpus. Output: tables of observed outputs and transitions, queries, and a
sample of the traces where all of them are too many.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.machines import Machine
from resolvent.replay.corpus import POOL_STEPS, Corpus
from resolvent.replay.counts import CountTable, ReplayCounts
from resolvent.replay.steps import StepQueries, to_machine_codes
from resolvent.traces import Symbol, TraceSet, symbol_text
from resolvent.traces.vocabulary import Codes, codes_of

V = TypeVar("V")

Numbers = NDArray[np.int64]

Location = tuple[int, int]  # trace and step, both counted from 0


class Query(NamedTuple):
    """An observation and an action; of a supplemented machine also the TM's state."""

    observation: Symbol
    action: Symbol
    transition_state: int | None = None

    def __str__(self) -> str:
        state = "" if self.transition_state is None else f" in TM state {self.transition_state}"
        return f"({symbol_text(self.observation)}, {symbol_text(self.action)}){state}"


def query_of(machine: Machine, number: int) -> Query:
    """Return the query that a number stands for in a machine."""
    observation: Any
    observation, action = machine.query(number)
    if not machine.supplemented:
        return Query(observation, action)
    symbol, state = observation
    return Query(symbol, action, int(state))


def observed_outputs(machine: Machine, replay: ReplayCounts) -> CountTable:
    """Return the outputs of a replay, as rows of known `state`, `query` and `output`.

    The location is the one with the fewest steps before it, then the first trace.
    """
    rows = replay.machines[machine.name].outputs
    states = replay.sizes.get("transition", 1)
    query, output = to_machine_codes(machine, rows, replay.alphabets, states)
    columns = {"state": rows["state"], "query": query, "output": output}
    return _known_rows(columns, rows)


def observed_transitions(machine: Machine, replay: ReplayCounts) -> CountTable:
    """Return the transitions of a replay, as rows of `state`, known `label` and `target`."""
    rows = replay.machines[machine.name].transitions
    label = codes_of(replay.alphabets.labels, machine.labels, -1)[rows["label"]]
    return _known_rows({"state": rows["state"], "label": label, "target": rows["output"]}, rows)


def nontrivial_labels(steps: StepQueries) -> Codes:
    """Return the label read before each step: −1 if none or trivial, their number if unknown."""
    codes = np.arange(len(steps.machine.labels) + 1, dtype=np.int32)
    codes[list(steps.machine.trivial)] = -1
    return _core.recode(steps.labels, codes)


def _known_rows(columns: dict[str, Any], rows: NDArray[np.void]) -> CountTable:
    """Return the rows without a negative code, sorted."""
    known = np.flatnonzero(np.min(np.stack(list(columns.values())), axis=0) >= 0)
    known = known[np.lexsort([column[known] for column in reversed(columns.values())])]
    return CountTable(
        {name: column[known] for name, column in columns.items()},
        rows["count"][known],
        {"trace": rows["early_trace"][known], "step": rows["early_step"][known].astype(np.int64)},
    )


def most_frequent(outputs: CountTable, rows: Numbers) -> tuple[Numbers, Numbers]:
    """Return the rows of the most frequent outputs by state and query, among some rows.

    With them return their lead over the next frequent output. Of equals the first row is taken.
    """
    state, query = outputs["state"], outputs["query"]
    rows = rows[np.lexsort((-outputs.count[rows], query[rows], state[rows]))]
    is_first = np.ones(len(rows), bool)
    is_first[1:] = (np.diff(state[rows]) != 0) | (np.diff(query[rows]) != 0)
    first, count = np.flatnonzero(is_first), outputs.count[rows]
    second = np.append(np.where(is_first, 0, count), 0)[first + 1]
    return rows[first], count[first] - second


def location(table: CountTable, row: int) -> Location:
    """Return where a row was first observed."""
    trace, step = table.locations
    return int(trace[row]), int(step[row])


class SampledSteps(NamedTuple):
    """Number of steps that a figure is based on, and number of all steps."""

    steps: int
    of: int

    def __str__(self) -> str:
        return f"from {self.steps:,} of {self.of:,} steps"


def sample_traces(corpus: Corpus) -> tuple[TraceSet, SampledSteps | None]:
    """Return traces to examine one by one: all in memory, or a sample of those in files.

    Files with more than `POOL_STEPS` steps are sampled by content, so that order and repetitions
    make no difference. The second value is None if all traces are returned.
    """
    if corpus.in_memory:
        return corpus.as_traces(), None
    if corpus.steps <= POOL_STEPS:
        return corpus.fetch(corpus.all), None
    sample = corpus.fetch(corpus.sample(POOL_STEPS))
    return sample, SampledSteps(sample.steps, corpus.steps)


class LazySequence(Sequence[V], Generic[V]):
    """A sequence of known length whose elements a function builds on access, by their index."""

    def __init__(self, length: int, build: Callable[[int], V]) -> None:
        self._indices, self._build = range(length), build

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, index: int) -> V: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[V, ...]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(map(self._build, self._indices[index]))
        return self._build(self._indices[index])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LazySequence | tuple) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} × {type(self[0]).__name__}>" if self else "<nothing>"
