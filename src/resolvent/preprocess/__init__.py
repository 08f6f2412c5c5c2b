"""Preprocessing (paper: "Preprocessing"): recorded traces → samples for inference."""

from resolvent.preprocess.auto_discretize import auto_discretise
from resolvent.preprocess.discretize import Discretise
from resolvent.preprocess.event_discovery import FoundEvents, find_events
from resolvent.preprocess.labeling import Labelling
from resolvent.preprocess.reward_levels import RewardLevels
from resolvent.preprocess.timing import LabelTiming
from resolvent.preprocess.transform import Senses

__all__ = [
    "Discretise",
    "FoundEvents",
    "LabelTiming",
    "Labelling",
    "RewardLevels",
    "Senses",
    "auto_discretise",
    "find_events",
]
