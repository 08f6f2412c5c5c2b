"""Moved."""

from resolvent.preprocess.reduction import (  # noqa: F401
    Basis,
    ConstantOutputs,
    LabelVerdict,
    Verdict,
    given_verdicts,
    judge_labels,
    remove_redundant,
    remove_trivial,
    trivial_codes,
)
