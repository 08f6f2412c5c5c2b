"""Noise: noisy samples → the most likely machine, how likely it is, and what else it might be."""

from resolvent.noise.everywhere import NoisyQuestions, noisy_questions
from resolvent.noise.evidence import NoisyEvidence, weigh
from resolvent.noise.likely import Likely, most_likely
from resolvent.noise.rivals import Rivals, rivals, settled
from resolvent.noise.statement import Noise

__all__ = [
    "Likely",
    "Noise",
    "NoisyEvidence",
    "NoisyQuestions",
    "Rivals",
    "most_likely",
    "noisy_questions",
    "rivals",
    "settled",
    "weigh",
]
