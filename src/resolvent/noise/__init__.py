"""Noise: noisy samples → the most likely machine, and how likely it is."""

from resolvent.noise.evidence import NoisyEvidence, weigh
from resolvent.noise.likely import Likely, most_likely

__all__ = ["Likely", "NoisyEvidence", "most_likely", "weigh"]
