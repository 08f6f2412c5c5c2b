"""Redundant alpha-input removal: questions that always get the same answer.

They tell no two states apart, so the search need not see them; the machine
gets their answers back as `ConstantOutputs`, good in every state.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

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
    alpha, output = samples.alpha, samples.output
    some_output = np.full(len(samples.alpha_keys), NONE, np.int32)
    some_output[alpha] = output
    varies = np.zeros(len(samples.alpha_keys), bool)
    varies[alpha[output != some_output[alpha]]] = True
    count = np.bincount(alpha, minlength=len(samples.alpha_keys))
    constant = np.flatnonzero((count > 0) & ~varies).astype(np.int32)
    kept = np.where(varies, np.arange(len(varies), dtype=np.int32), np.int32(NONE))
    return (
        replace(samples, alpha=kept[alpha]),
        ConstantOutputs(constant, some_output[constant], count[constant]),
    )
