"""Evidence: machines + traces → what speaks for the machines, and what is missing."""

from resolvent.evidence.completeness import Completeness, OpenHistory
from resolvent.evidence.experiments import Experiment
from resolvent.evidence.gathering import Evidence, MachineEvidence, gather
from resolvent.evidence.holdout import Holdout, error_bound
from resolvent.evidence.separation import Question, Separation, Separations

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
