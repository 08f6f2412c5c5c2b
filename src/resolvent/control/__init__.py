"""Control: machines + traces or a live environment → memory, a model, and how best to act.

`wrapping/` keeps the machines' states beside what an environment shows, `planning/` finds
the best way to act from machines and traces alone, `learning/` by trying; `shaping/` lets
a plan say to any learner how good each step was.
"""

from resolvent.control.planning.model import Model
from resolvent.control.planning.plans import Plan, plan
from resolvent.rl.experiment_policy import Trial
from resolvent.rl.q_table import Learned
from resolvent.rl.run_plan import Runs
from resolvent.rl.tracker import Memory
from resolvent.rl.trainer import q_learning
from resolvent.rl.wrappers.augment import AugmentObservation, VectorAugmentObservation
from resolvent.rl.wrappers.shape import ShapeReward, VectorShapeReward

__all__ = [
    "AugmentObservation",
    "Learned",
    "Memory",
    "Model",
    "Plan",
    "Runs",
    "ShapeReward",
    "Trial",
    "VectorAugmentObservation",
    "VectorShapeReward",
    "plan",
    "q_learning",
]
