"""Noise: noisy samples → the most likely machine, and how likely it is."""

from resolvent.noise.evidence import NoisyEvidence, weigh

__all__ = ["NoisyEvidence", "weigh"]
