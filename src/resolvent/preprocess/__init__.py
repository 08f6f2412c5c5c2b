"""Preprocessing (paper: "Preprocessing"): recorded traces → samples for inference."""

from resolvent.preprocess.auto_discretize import auto_discretize
from resolvent.preprocess.discretize import Discretizer
from resolvent.preprocess.event_discovery import LabelCandidate, label_candidates
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.preprocess.timing import LabelTiming
from resolvent.preprocess.transform import Preprocessor, RewardLevels

__all__ = [
    "Discretizer",
    "LabelCandidate",
    "LabelTiming",
    "LabelingFunction",
    "Preprocessor",
    "RewardLevels",
    "auto_discretize",
    "label_candidates",
]
