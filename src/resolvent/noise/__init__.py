"""Noise: noisy samples → the most likely machine, and how likely it is."""

from resolvent.noise.evidence import NoisyEvidence, weigh
from resolvent.noise.likely import Likely, most_likely
from resolvent.noise.statement import Noise

__all__ = ["Likely", "Noise", "NoisyEvidence", "most_likely", "weigh"]
