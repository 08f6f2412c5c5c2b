"""Noise: what may be noisy in traces, and the machines and labels that are most likely then."""

from resolvent.machines.uncertainty import AlternativeTransitions, LabelNoise, StateUncertainty
from resolvent.noise.alternatives import compare_transitions, improve_transitions
from resolvent.noise.hidden import LatentStateMachine, fit_latent_machine
from resolvent.noise.labels import DenoisedLabels, denoise_labels
from resolvent.noise.model import Noise
from resolvent.noise.outliers import OutlierScores, score_outliers
from resolvent.noise.outputs import (
    LikelyMachine,
    NoisyEvidence,
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
    "NoisyEvidence",
    "OutlierScores",
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
