"""Reinforcement learning: all code that steps a Gymnasium environment.

`collect` records traces; `augment` shows machine states and `shape` shapes rewards; `trainer` has
Q-learning; `run_plan` and `experiment_policy` act by plans and experiments; `sb3` is for
Stable-Baselines3. Most names are imported at their first use, so that collecting does not load
planning and inference.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from resolvent.rl.collect import collect as collect

if TYPE_CHECKING:
    from resolvent.rl.experiment_policy import ExperimentPolicy as ExperimentPolicy
    from resolvent.rl.q_table import Curve as Curve
    from resolvent.rl.q_table import QTable as QTable
    from resolvent.rl.run_plan import Runs as Runs
    from resolvent.rl.tabular import Evaluation as Evaluation
    from resolvent.rl.tracker import StateTracker as StateTracker
    from resolvent.rl.trainer import q_learning as q_learning

_MODULES = {
    "Curve": "q_table",
    "Evaluation": "tabular",
    "ExperimentPolicy": "experiment_policy",
    "QTable": "q_table",
    "Runs": "run_plan",
    "StateTracker": "tracker",
    "q_learning": "trainer",
}

__all__ = sorted(["collect", *_MODULES])


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
