"""The methods that the paper compares with, and peers a user might pick instead."""

from resolvent.baselines.hidden_markov import hmm
from resolvent.baselines.outcome import Outcome

__all__ = ["Outcome", "hmm"]
