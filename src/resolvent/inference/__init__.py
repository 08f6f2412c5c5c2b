"""Inference: samples → prefix tree → state merging → machines, by the paper's algorithm.

`infer` and `evidence` are modules here; their functions are `resolvent.infer` and
`resolvent.evidence`.
"""

from typing import TYPE_CHECKING

from resolvent.inference.options import InferenceOptions
from resolvent.inference.strategy import STRATEGIES, Strategy

if TYPE_CHECKING:
    from resolvent.inference.cross_validation import HoldoutScore

__all__ = ["STRATEGIES", "HoldoutScore", "InferenceOptions", "Strategy"]


def __getattr__(name: str) -> object:
    if name == "HoldoutScore":  # its module imports most of this package
        from resolvent.inference.cross_validation import HoldoutScore

        return HoldoutScore
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
