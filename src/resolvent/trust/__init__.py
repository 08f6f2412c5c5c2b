"""Trust: machines + traces → evidence for the machines, and what is missing."""

from resolvent.trust.completeness import Completeness, OpenHistory
from resolvent.trust.experiments import Experiment
from resolvent.trust.gathering import Evidence, MachineEvidence, gather
from resolvent.trust.holdout import Holdout, error_bound
from resolvent.trust.separation import Question, Separation, Separations

__all__ = [
    "Completeness",
    "Evidence",
    "Experiment",
    "Holdout",
    "MachineEvidence",
    "OpenHistory",
    "Question",
    "Separation",
    "Separations",
    "error_bound",
    "gather",
]
