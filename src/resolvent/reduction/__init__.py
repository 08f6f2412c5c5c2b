"""Reduction: `SampleSet` → smaller `SampleSet`, and what was taken out, as data."""

from resolvent.reduction.redundant import ConstantOutputs, remove_redundant
from resolvent.reduction.trivial import remove_trivial, trivial_codes

__all__ = ["ConstantOutputs", "remove_redundant", "remove_trivial", "trivial_codes"]
