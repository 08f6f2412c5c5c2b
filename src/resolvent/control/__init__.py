"""Control: `MachinePair` → what learns or plans with the machines' states as memory."""

from resolvent.control.augment_observation import AugmentObservation
from resolvent.control.memory import Memory
from resolvent.control.vector_augment_observation import VectorAugmentObservation

__all__ = ["AugmentObservation", "Memory", "VectorAugmentObservation"]
