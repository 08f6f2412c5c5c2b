"""Noise: noisy samples → the most likely machine, and how likely it is; labels that lie → true."""

from resolvent.noise.everywhere import NoisyQuestions, noisy_questions
from resolvent.noise.evidence import NoisyEvidence, weigh
from resolvent.noise.label_noise import LabelNoise
from resolvent.noise.label_tally import LabelTally
from resolvent.noise.likely import Likely, most_likely
from resolvent.noise.lying import WITHOUT_LABELS, Corrected, follow_exactly, truthful
from resolvent.noise.statement import Noise

__all__ = [
    "WITHOUT_LABELS",
    "Corrected",
    "LabelNoise",
    "LabelTally",
    "Likely",
    "Noise",
    "NoisyEvidence",
    "NoisyQuestions",
    "follow_exactly",
    "most_likely",
    "noisy_questions",
    "truthful",
    "weigh",
]
