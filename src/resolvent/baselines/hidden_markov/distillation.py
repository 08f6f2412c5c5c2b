"""Moved."""

from resolvent.paper.baselines.hmm_distillation import (Arrow, Distillation, Table, _Classes, _Contradiction, _fold, _folded, _likely_arrows, _machine, _merge_to_fixpoint, _numbered, distil)  # noqa: F401
