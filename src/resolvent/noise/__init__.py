"""Noise: what may be noisy in traces, and the machines and labels that are most likely then."""

from resolvent.noise.latent import LatentStateMachine, fit_latent_machine
from resolvent.noise.model import Noise, NoiseCandidate
from resolvent.noise.outputs import (
    LikelyMachine,
    SearchLimits,
    fit_likely_machine,
    marginal_likelihood,
)

__all__ = [
    "LatentStateMachine",
    "LikelyMachine",
    "Noise",
    "NoiseCandidate",
    "SearchLimits",
    "fit_latent_machine",
    "fit_likely_machine",
    "marginal_likelihood",
]
