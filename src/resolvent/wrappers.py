"""Gymnasium wrappers: machine states beside the observation, and rewards shaped by a plan."""

from resolvent.rl.wrappers.augment import AugmentObservation, VectorAugmentObservation
from resolvent.rl.wrappers.shape import ShapeReward, VectorShapeReward

__all__ = ["AugmentObservation", "ShapeReward", "VectorAugmentObservation", "VectorShapeReward"]
