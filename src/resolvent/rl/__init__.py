"""Reinforcement learning: all code that steps a Gymnasium environment.

`collect` records traces; `wrappers` show machine states and shape rewards; `trainer` has
Q-learning; `run_plan` and `experiment_policy` act by plans and experiments; `sb3` is for
Stable-Baselines3. Most names are imported at their first use, so that collecting does not load
planning and inference.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from resolvent.rl.collect import collect

if TYPE_CHECKING:
    from resolvent.rl.experiment_policy import ExperimentPolicy
    from resolvent.rl.q_table import Curve, QTable
    from resolvent.rl.run_plan import Runs
    from resolvent.rl.tabular import Evaluation
    from resolvent.rl.tracker import StateTracker
    from resolvent.rl.trainer import q_learning
    from resolvent.rl.wrappers import (
        AugmentObservation,
        ShapeReward,
        VectorAugmentObservation,
        VectorShapeReward,
    )

_MODULES = {
    "experiment_policy": ("ExperimentPolicy",),
    "q_table": ("Curve", "QTable"),
    "run_plan": ("Runs",),
    "tabular": ("Evaluation",),
    "tracker": ("StateTracker",),
    "trainer": ("q_learning",),
    "wrappers": (
        "AugmentObservation",
        "ShapeReward",
        "VectorAugmentObservation",
        "VectorShapeReward",
    ),
}

__all__ = [
    "AugmentObservation",
    "Curve",
    "Evaluation",
    "ExperimentPolicy",
    "QTable",
    "Runs",
    "ShapeReward",
    "StateTracker",
    "VectorAugmentObservation",
    "VectorShapeReward",
    "collect",
    "q_learning",
]


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
