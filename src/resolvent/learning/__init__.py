"""Learning: traces in memory → machines that explain them, output by output."""

from resolvent.learning.labels import WEIGHING
from resolvent.learning.learner import Learner, log_evidence
from resolvent.learning.lesson import NO_TIME

__all__ = ["NO_TIME", "WEIGHING", "Learner", "log_evidence"]
