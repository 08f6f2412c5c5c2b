"""Samples → the question put to an exact search: distinct traces in an order of their own.

Traces are ordered by a digest of what they say. So their order and repetition
make no difference, and the first few are as good as a random choice.
"""

import hashlib
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.merging import Automaton
from resolvent.merging.automaton import automaton_from_columns
from resolvent.samples import NONE, SampleSet
from resolvent.traces.vocabulary import Codes

Table: TypeAlias = NDArray[np.int32]
"""Transitions by state and label; state 0 is initial. Total, unless it is settled."""


class Question:
    """Distinct traces as plain columns, which can be sent to where the search is.

    `labels` is how many labels occur; those that no row reads are left out.
    """

    def __init__(
        self, alpha: Codes, output: Codes, beta: Codes, offsets: NDArray[np.int64], labels: int
    ) -> None:
        self.alpha, self.output, self.beta = alpha, output, beta
        self.offsets = offsets
        self.labels = labels

    @cached_property
    def evidence(self) -> _core.AnswerTree:
        """The answers after each history, for the compiled core; built once."""
        tree = _core.build_history_tree(self.beta, self.offsets)
        return _core.answer_tree(tree, self.alpha, self.output, self.labels)

    def clash(self, table: Table) -> tuple[int, int] | None:
        """Return two rows that a machine would have to answer alike but must not, or None."""
        return _core.first_clash(
            table.ravel(), self.labels, self.alpha, self.output, self.beta, self.offsets
        )

    def settle(self, table: Table) -> Table:
        """Number the states as the samples meet them, and leave out what these never use."""
        flat = self.evidence.settle(table.ravel())
        # Without labels a machine has one state, and its table no entries.
        return flat.reshape(-1, self.labels) if self.labels else flat.reshape(1, 0)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "evidence"}


class Problem(Question):
    """The question that samples put, and their answers for the machines found."""

    def __init__(self, samples: SampleSet) -> None:
        self._samples = samples
        self._codes = np.unique(samples.beta[samples.beta != NONE])
        dense = np.full(len(samples.labels), NONE, np.int32)
        dense[self._codes] = np.arange(len(self._codes), dtype=np.int32)
        rows, offsets = _distinct_traces(samples)
        super().__init__(
            samples.alpha[rows],
            samples.output[rows],
            _core.recode(samples.beta[rows], dense),
            offsets,
            len(self._codes),
        )

    @property
    def question(self) -> Question:
        """The question alone."""
        return Question(self.alpha, self.output, self.beta, self.offsets, self.labels)

    def table_of(self, automaton: Automaton) -> Table:
        """Return the settled table of a machine that explains the samples."""
        full = np.zeros((automaton.states, len(self._samples.labels)), np.int32)
        full[automaton.transition_state, automaton.transition_label] = automaton.transition_target
        return self.settle(np.ascontiguousarray(full[:, self._codes]))

    def automaton(self, settled: Table) -> Automaton:
        """Count what all samples say of the machine with this settled table."""
        samples = self._samples
        full = np.full((len(settled), len(samples.labels)), NONE, np.int32)
        full[:, self._codes] = settled
        tree = samples.histories.tree
        found = _core.merge_as(
            tree, samples.alpha, samples.output, full.ravel(), len(samples.labels)
        )
        return automaton_from_columns(found, len(tree))


def _distinct_traces(samples: SampleSet) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of each distinct trace, trace after trace, and where traces begin."""
    columns = np.stack([samples.beta, samples.alpha, samples.output], axis=1)
    columns[columns[:, 1] == NONE, 2] = NONE  # what was not asked was not answered
    spans = {
        hashlib.blake2b(columns[start:stop].tobytes(), digest_size=16).digest(): (start, stop)
        for start, stop in pairwise(samples.offsets.tolist())
    }
    chosen = [spans[digest] for digest in sorted(spans)]
    rows = np.concatenate([np.empty(0, np.int64), *(np.arange(*span) for span in chosen)])
    return rows, np.cumsum([0, *(stop - start for start, stop in chosen)], dtype=np.int64)
