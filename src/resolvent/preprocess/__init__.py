"""Preprocessing (paper: "Preprocessing"): recorded traces → samples for inference."""

from resolvent.preprocess.auto_discretize import auto_discretize
from resolvent.preprocess.discretize import Discretizer
from resolvent.preprocess.event_discovery import DiscoveredLabels, discover_labels
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.preprocess.reward_levels import RewardLevels
from resolvent.preprocess.timing import LabelTiming
from resolvent.preprocess.transform import Preprocessor

__all__ = [
    "DiscoveredLabels",
    "Discretizer",
    "LabelTiming",
    "LabelingFunction",
    "Preprocessor",
    "RewardLevels",
    "auto_discretize",
    "discover_labels",
]
