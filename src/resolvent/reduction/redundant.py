"""Redundant alpha-input removal: questions that always get the same answer.

They tell no two states apart, so the search need not see them; the machine
gets their answers back as `ConstantOutputs`, good in every state.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.samples import NONE, SampleSet
from resolvent.traces.vocabulary import Codes


@dataclass(frozen=True, slots=True, eq=False)
class ConstantOutputs:
    """Alphas with one answer throughout: alpha ids, their outputs, how often seen."""

    alpha: Codes
    output: Codes
    count: NDArray[np.int64]

    @classmethod
    def nothing(cls) -> "ConstantOutputs":
        """Return the record of a removal that took nothing out."""
        empty = np.empty(0, np.int32)
        return cls(empty, empty, np.empty(0, np.int64))


def remove_redundant(samples: SampleSet) -> tuple[SampleSet, ConstantOutputs]:
    """Blank out every alpha whose output is the same in all of its rows.

    Paper: "Redundant α-Input Removal".
    """
    alphas = len(samples.alpha_keys)
    output, count, varies = _core.tally_outputs(samples.alpha, samples.output, alphas)
    constant = np.flatnonzero((count > 0) & (varies == 0)).astype(np.int32)
    kept = np.where(varies, np.arange(alphas, dtype=np.int32), np.int32(NONE))
    return (
        replace(samples, alpha=_core.recode(samples.alpha, kept)),
        ConstantOutputs(constant, output[constant], count[constant]),
    )
