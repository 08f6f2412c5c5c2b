"""Noise: what may be noisy in traces, and the machines and labels that are most likely then."""

from resolvent.machines.uncertainty import Doubt, LabelNoise, Rivals
from resolvent.noise.alternatives import rivals, settled_moves
from resolvent.noise.hidden import LikelyHidden, most_likely_hidden
from resolvent.noise.labels import DenoisedLabels, denoise_labels
from resolvent.noise.model import Noise
from resolvent.noise.outliers import OutlierScores, score_outliers
from resolvent.noise.outputs import Likely, NoisyEvidence, most_likely, weigh
from resolvent.noise.rewards import FEWEST_VALUES, find_reward_levels

__all__ = [
    "FEWEST_VALUES",
    "DenoisedLabels",
    "Doubt",
    "LabelNoise",
    "Likely",
    "LikelyHidden",
    "Noise",
    "NoisyEvidence",
    "OutlierScores",
    "Rivals",
    "denoise_labels",
    "find_reward_levels",
    "most_likely",
    "most_likely_hidden",
    "rivals",
    "score_outliers",
    "settled_moves",
    "weigh",
]
