"""Control: machines + traces or a live environment → memory, a model, and how best to act.

`wrapping/` keeps the machines' states beside what an environment shows, `planning/` finds
the best way to act from machines and traces alone, `learning/` by trying; `shaping/` lets
a plan say to any learner how good each step was.
"""

from resolvent.control.learning.learned import Learned
from resolvent.control.learning.q_learning import q_learning
from resolvent.control.planning.carrying_out import Trial
from resolvent.control.planning.model import Model
from resolvent.control.planning.plans import Plan, plan
from resolvent.control.planning.running import Runs
from resolvent.control.shaping.shape_reward import ShapeReward
from resolvent.control.shaping.vector_shape_reward import VectorShapeReward
from resolvent.control.wrapping.augment_observation import AugmentObservation
from resolvent.control.wrapping.memory import Memory
from resolvent.control.wrapping.vector_augment_observation import VectorAugmentObservation

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
