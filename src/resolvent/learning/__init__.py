"""Learning: traces in memory → machines that explain them, output by output."""

from resolvent.learning.labels import WEIGHING
from resolvent.learning.learner import Learner
from resolvent.learning.lesson import NO_TIME
from resolvent.learning.likely import log_evidence

__all__ = ["NO_TIME", "WEIGHING", "Learner", "log_evidence"]
