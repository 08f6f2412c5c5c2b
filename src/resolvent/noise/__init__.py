"""Noise: noisy samples → the most likely machine, and how likely it is; labels that lie → true."""

from resolvent.noise.everywhere import NoisyQuestions, noisy_questions
from resolvent.noise.evidence import NoisyEvidence, weigh
from resolvent.noise.label_noise import LabelNoise
from resolvent.noise.label_tally import LabelTally
from resolvent.noise.likely import Likely, most_likely
from resolvent.noise.lying import (
    WITHOUT_LABELS,
    Corrected,
    follow_exactly,
    follow_nothing,
    truthful,
)
from resolvent.noise.reward_noise import FEWEST_VALUES, find_reward_levels
from resolvent.noise.settling import settled
from resolvent.noise.statement import Noise

__all__ = [
    "FEWEST_VALUES",
    "WITHOUT_LABELS",
    "Corrected",
    "LabelNoise",
    "LabelTally",
    "Likely",
    "Noise",
    "NoisyEvidence",
    "NoisyQuestions",
    "find_reward_levels",
    "follow_exactly",
    "follow_nothing",
    "most_likely",
    "noisy_questions",
    "settled",
    "truthful",
    "weigh",
]
