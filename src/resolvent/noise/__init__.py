"""Noise: noisy samples → the most likely machine, and how likely it is."""

from resolvent.noise.everywhere import NoisyQuestions, noisy_questions
from resolvent.noise.evidence import NoisyEvidence, weigh
from resolvent.noise.likely import Likely, most_likely
from resolvent.noise.reward_noise import FEWEST_VALUES, find_reward_levels
from resolvent.noise.settling import settled
from resolvent.noise.statement import Noise

__all__ = [
    "FEWEST_VALUES",
    "Likely",
    "Noise",
    "NoisyEvidence",
    "NoisyQuestions",
    "find_reward_levels",
    "most_likely",
    "noisy_questions",
    "settled",
    "weigh",
]
