"""Noise: what may be noisy in traces, and the machines and labels that are most likely then."""

from resolvent.machines.augmented_state import LabelNoise, StateUncertainty
from resolvent.machines.tables import AlternativeTransitions
from resolvent.noise.alternatives import compare_transitions, improve_transitions
from resolvent.noise.labels import DenoisedLabels, denoise_labels
from resolvent.noise.latent import LatentStateMachine, fit_latent_machine
from resolvent.noise.model import Noise, NoiseCandidate
from resolvent.noise.outliers import OutlierScores, score_outliers
from resolvent.noise.outputs import (
    LikelyMachine,
    NoisyEvidence,
    SearchLimits,
    fit_likely_machine,
    marginal_likelihood,
)
from resolvent.noise.rewards import FEWEST_VALUES, find_reward_levels

__all__ = [
    "FEWEST_VALUES",
    "AlternativeTransitions",
    "DenoisedLabels",
    "LabelNoise",
    "LatentStateMachine",
    "LikelyMachine",
    "Noise",
    "NoiseCandidate",
    "NoisyEvidence",
    "OutlierScores",
    "SearchLimits",
    "StateUncertainty",
    "compare_transitions",
    "denoise_labels",
    "find_reward_levels",
    "fit_latent_machine",
    "fit_likely_machine",
    "improve_transitions",
    "marginal_likelihood",
    "score_outliers",
]
