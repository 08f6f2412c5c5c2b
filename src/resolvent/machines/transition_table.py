"""The transitions of a machine, recoded to other label alphabets.

Input: next states by state and label code. Output: the same by the label codes of traces.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from resolvent.traces.symbols import Label
from resolvent.traces.vocabulary import Codes, Vocabulary, codes_of


@dataclass(frozen=True, slots=True, eq=False)
class TransitionTable:
    """Next states as [state, label code]; −1 where none is known.

    >>> from resolvent.traces.vocabulary import Vocabulary
    >>> table = TransitionTable(np.int32([[1, -1], [0, 1]]), Vocabulary("ab"))
    >>> table.for_labels("bca").tolist()
    [[-1, -1, 1], [1, -1, 0]]
    >>> table.for_labels("bca", unseen="stay", others=True).tolist()
    [[0, 0, 1, 0], [1, 1, 0, 1]]
    """

    next_state: Codes
    labels: Vocabulary[Label]

    def for_labels(
        self,
        alphabet: Collection[Label],
        *,
        unseen: str = "unknown",
        others: bool = False,
    ) -> Codes:
        """Return the next states as [state, label code in the alphabet], a contiguous array.

        Transitions that are not known are −1, or with `unseen="stay"` lead back to their state.
        With `others` a last column stands for all labels outside the alphabet.
        """
        codes = codes_of(alphabet, self.labels, -1)
        if others:
            codes = np.append(codes, np.int32(-1))
        unknown = np.full((len(self.next_state), 1), -1, np.int32)
        table = np.hstack([self.next_state, unknown])[:, codes]
        if unseen == "stay":
            table = np.where(table < 0, np.arange(len(table), dtype=np.int32)[:, None], table)
        return np.ascontiguousarray(table)
