"""Gymnasium wrappers: machine states beside the observation, and rewards shaped by a plan."""

from resolvent.rl.augment import AugmentObservation, VectorAugmentObservation
from resolvent.rl.shape import ShapeReward, VectorShapeReward

__all__ = ["AugmentObservation", "ShapeReward", "VectorAugmentObservation", "VectorShapeReward"]
