"""Prepare the columns of traces that findings are counted from, each computed once.

Input: traces and a label timing. Output: queries, outputs and label sequences of every step.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.preprocess.reduction import remove_trivial, trivial_codes
from resolvent.preprocess.samples import Histories, SampleSet, output_samples
from resolvent.preprocess.timing import LabelTiming
from resolvent.replay.counts import GroupedCounts, Int64s
from resolvent.traces import Codes, Symbol, TraceSet, symbol_text
from resolvent.traces.schema import OBSERVATION

MAX_SORTED_STEPS: Final = 500_000  # maximum number of steps sorted by trace or by time
_MAX_CHARACTERS: Final = 60  # maximum number of characters of a symbol that are shown
_OUTCOMES_SHOWN: Final = 4  # number of outputs listed in a text if there are more
_MAX_OUTCOMES: Final = 20  # maximum number of outputs listed in figures


class OutputTally(GroupedCounts):
    """Counts of the outputs to each query: keys are queries, values are output codes."""

    @cached_property
    def differing(self) -> Int64s:
        """The number of steps of each query with another output than its most frequent one."""
        return self.total - self.largest

    @property
    def repeated(self) -> int:
        """The number of steps with a query that occurs more than once."""
        return int(self.total[self.total > 1].sum())

    @property
    def contradicted(self) -> Int64s:
        """The queries with more than one output."""
        return self.key[self.differing > 0]

    def worst(self) -> tuple[int, list[tuple[int, int]]]:
        """Return the query with most differing steps, and its outputs, the most frequent first."""
        row = int(np.argmax(self.differing))
        start, stop = self.offset[row : row + 2].tolist()
        order = start + np.argsort(-self.count[start:stop], kind="stable")
        outputs = zip(self.value[order].tolist(), self.count[order].tolist(), strict=True)
        return int(self.key[row]), list(outputs)


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of traces in order: the query and output of each, and the labels read before.

    `sequence` stands for the labels read before a step without "no event", `full_sequence` for all
    of them. `outputs` are the columns that machines should predict.
    """

    traces: TraceSet
    timing: LabelTiming
    outputs: tuple[str, ...]

    @cached_property
    def samples(self) -> dict[str, SampleSet]:
        """Queries and outputs, by output column."""
        histories = remove_trivial(self._histories, trivial_codes(self.traces.labels))
        names = dict.fromkeys((OBSERVATION, *self.outputs))
        return {name: output_samples(self.traces, histories, name) for name in names}

    @cached_property
    def _histories(self) -> Histories:
        return Histories.of(self.traces, self.timing)

    @property
    def query(self) -> Codes:
        """The number of each step's query."""
        return self.samples[OBSERVATION].alpha

    @property
    def queries(self) -> int:
        """The number of queries that there may be."""
        return len(self.samples[OBSERVATION].alpha_keys)

    @cached_property
    def sequence(self) -> Codes:
        """A number for the labels read before each step, without "no event"."""
        return _core.history_columns(self.samples[OBSERVATION].histories.tree)[0]

    @cached_property
    def full_sequence(self) -> Codes:
        """A number for all the labels read before each step."""
        return _core.history_columns(self._histories.tree)[0]

    @cached_property
    def trace(self) -> Int64s:
        """The number of each step's trace."""
        return self.traces.trace_of_step

    @cached_property
    def number(self) -> Int64s:
        """The number of steps before each step in its trace."""
        return np.arange(self.traces.steps) - self.traces.offsets[self.trace]

    def after(self, sequence: Codes) -> Int64s:
        """Return a number for each step that stands for a label sequence and the query."""
        return sequence.astype(np.int64) * self.queries + self.query

    def tally(
        self, output: str, queries: Int64s, rows: NDArray[np.int64] | None = None
    ) -> OutputTally:
        """Count the outputs to each query, of all steps or of some rows."""
        codes = self.samples[output].output
        if rows is not None:
            queries, codes = queries[rows], codes[rows]
        return OutputTally.of(queries, codes)

    def has_contradictions(self, output: str) -> bool:
        """Return whether steps with equal labels and query have different outputs."""
        return len(self.tally(output, self.after(self.sequence)).contradicted) > 0

    def query_text(self, query: int) -> str:
        """Write the observation and the action of a query, or of labels and a query."""
        samples = self.samples[OBSERVATION]
        key = int(samples.alpha_keys[query % self.queries])
        observation, action = divmod(key, len(samples.actions))
        symbols = samples.observations[observation], samples.actions[action]
        return f"({', '.join(map(shortened, symbols))})"

    def outcomes(self, output: str, counts: Sequence[tuple[int, int]]) -> dict[str, int]:
        """Return outputs as texts, each with its count, the first of them if there are many."""
        values = self.samples[output].outputs
        return {shortened(values[code]): count for code, count in counts[:_MAX_OUTCOMES]}


def outcomes_text(outcomes: dict[str, int], of: int) -> str:
    """Write outputs and their counts, the first few of `of`."""
    texts = [f"{value} ({count:,}×)" for value, count in outcomes.items()]
    if of > _OUTCOMES_SHOWN + 1:
        texts[_OUTCOMES_SHOWN:] = [f"{of - _OUTCOMES_SHOWN:,} others"]
    return " or ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def shortened(symbol: Symbol) -> str:
    """Write a symbol, or the beginning of a long one."""
    text = symbol_text(symbol)
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}…"
