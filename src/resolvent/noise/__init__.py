"""Noise: noisy samples → the most likely machine, how likely it is, and what else it might be."""

from resolvent.noise.evidence import NoisyEvidence, weigh
from resolvent.noise.likely import Likely, most_likely
from resolvent.noise.rivals import Rivals, rivals, settled

__all__ = ["Likely", "NoisyEvidence", "Rivals", "most_likely", "rivals", "settled", "weigh"]
