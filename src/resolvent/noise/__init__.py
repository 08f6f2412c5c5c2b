"""Noise: noisy samples → the most likely machine, how likely it is, and what else it might be."""

from resolvent.noise.doubt import Doubt
from resolvent.noise.everywhere import NoisyQuestions, noisy_questions
from resolvent.noise.evidence import NoisyEvidence, weigh
from resolvent.noise.hidden import LikelyHidden, most_likely_hidden
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
from resolvent.noise.rivals import Rivals, rivals, settled_moves
from resolvent.noise.settling import settled_questions
from resolvent.noise.statement import Noise
from resolvent.noise.unmasking import Unmasked, unmask

__all__ = [
    "FEWEST_VALUES",
    "WITHOUT_LABELS",
    "Corrected",
    "Doubt",
    "LabelNoise",
    "LabelTally",
    "Likely",
    "LikelyHidden",
    "Noise",
    "NoisyEvidence",
    "NoisyQuestions",
    "Rivals",
    "Unmasked",
    "find_reward_levels",
    "follow_exactly",
    "follow_nothing",
    "most_likely",
    "most_likely_hidden",
    "noisy_questions",
    "rivals",
    "settled_moves",
    "settled_questions",
    "truthful",
    "unmask",
    "weigh",
]
