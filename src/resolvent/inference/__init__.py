"""Inference: samples → prefix tree → state merging → machines, by the paper's algorithm.

`infer` is a module here; its function is `resolvent.infer`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from resolvent.inference.options import InferenceOptions
from resolvent.inference.strategy import STRATEGIES, Strategy

if TYPE_CHECKING:
    from resolvent.inference.held_out import HoldoutScore
    from resolvent.inference.infer import MachineInference

__all__ = ["STRATEGIES", "HoldoutScore", "InferenceOptions", "MachineInference", "Strategy"]

# Their modules import most of this package.
_LATE = {"HoldoutScore": "held_out", "MachineInference": "infer"}


def __getattr__(name: str) -> object:
    if name in _LATE:
        return getattr(import_module(f"{__name__}.{_LATE[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
