"""Reduction: `SampleSet` → smaller `SampleSet`, and what was taken out, as data."""

from resolvent.reduction.deletion import (
    Basis,
    LabelVerdict,
    Verdict,
    given_verdicts,
    judge_labels,
    some_traces,
)
from resolvent.reduction.redundant import ConstantOutputs, remove_redundant
from resolvent.reduction.trivial import remove_trivial, trivial_codes

__all__ = [
    "Basis",
    "ConstantOutputs",
    "LabelVerdict",
    "Verdict",
    "given_verdicts",
    "judge_labels",
    "remove_redundant",
    "remove_trivial",
    "some_traces",
    "trivial_codes",
]
