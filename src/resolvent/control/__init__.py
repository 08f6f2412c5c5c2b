"""Control: machines + traces or a live environment → memory, a model, and how best to act."""

from resolvent.control.augment_observation import AugmentObservation
from resolvent.control.experiment import NextExperiment
from resolvent.control.learned import Learned
from resolvent.control.memory import Memory
from resolvent.control.model import Model
from resolvent.control.planning import Plan, plan
from resolvent.control.q_learning import q_learning
from resolvent.control.running import Runs
from resolvent.control.vector_augment_observation import VectorAugmentObservation

__all__ = [
    "AugmentObservation",
    "Learned",
    "Memory",
    "Model",
    "NextExperiment",
    "Plan",
    "Runs",
    "VectorAugmentObservation",
    "plan",
    "q_learning",
]
