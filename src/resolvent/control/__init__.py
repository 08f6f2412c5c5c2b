"""Control: machines + traces or a live environment → memory, a model, and how best to act."""

from resolvent.control.augment_observation import AugmentObservation
from resolvent.control.experiment import NextExperiment
from resolvent.control.memory import Memory
from resolvent.control.model import Model
from resolvent.control.planning import Plan, plan
from resolvent.control.running import Runs
from resolvent.control.vector_augment_observation import VectorAugmentObservation

__all__ = [
    "AugmentObservation",
    "Memory",
    "Model",
    "NextExperiment",
    "Plan",
    "Runs",
    "VectorAugmentObservation",
    "plan",
]
