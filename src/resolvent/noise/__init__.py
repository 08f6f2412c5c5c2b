"""Noise: noisy samples → the most likely machine, and how likely it is; labels that lie → true."""

from resolvent.noise.doubt import Doubt
from resolvent.noise.everywhere import NoisyQuestions, noisy_questions
from resolvent.noise.evidence import NoisyEvidence, weigh
from resolvent.noise.hidden import LikelyHidden, most_likely_hidden
from resolvent.noise.label_noise import LabelNoise
from resolvent.noise.label_tally import LabelTally
from resolvent.noise.likely import Likely, most_likely
from resolvent.noise.lying import WITHOUT_LABELS, Corrected, follow_exactly, truthful
from resolvent.noise.statement import Noise
from resolvent.noise.unmasking import Unmasked, unmask

__all__ = [
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
    "Unmasked",
    "follow_exactly",
    "most_likely",
    "most_likely_hidden",
    "noisy_questions",
    "truthful",
    "unmask",
    "weigh",
]
