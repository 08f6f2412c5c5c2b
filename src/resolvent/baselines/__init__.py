"""The methods that the paper compares with, and peers a user might pick instead."""

from resolvent.baselines.aalpy_peer import aalpy
from resolvent.baselines.edges import KeyedRewardMachine
from resolvent.baselines.hidden_markov import hmm
from resolvent.baselines.ilp import ilp
from resolvent.baselines.lrm import lrm
from resolvent.baselines.outcome import Outcome

__all__ = ["KeyedRewardMachine", "Outcome", "aalpy", "hmm", "ilp", "lrm"]
