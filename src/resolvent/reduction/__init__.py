"""Moved."""

from resolvent.preprocess.reduction import Basis, ConstantOutputs, LabelVerdict, Verdict  # noqa: F401
from resolvent.preprocess.reduction import given_verdicts, judge_labels, remove_redundant, remove_trivial, trivial_codes  # noqa: F401
