"""Baselines: the methods that the paper compares with, and AALpy as a peer.

Input: a `TraceSet`. Output: an `Outcome`.
"""

from resolvent.paper.baselines.aalpy import aalpy
from resolvent.paper.baselines.hmm import hmm
from resolvent.paper.baselines.ilp import ilp
from resolvent.paper.baselines.lrm import lrm
from resolvent.paper.baselines.outcome import Outcome

__all__ = ["Outcome", "aalpy", "hmm", "ilp", "lrm"]
