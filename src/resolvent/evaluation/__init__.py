"""Evaluation: estimate from traces the reliability of machines, and the missing data.

Input: machines and traces. Output: evidence, hold-out scores, experiments and findings.
"""

from resolvent.evaluation.completeness import AmbiguousSequence, Completeness, TransitionSupport
from resolvent.evaluation.diagnosis.diagnose import diagnose
from resolvent.evaluation.diagnosis.findings import Diagnosis, Finding, Severity
from resolvent.evaluation.evidence import Evidence, MachineEvidence
from resolvent.evaluation.experiments import Experiment
from resolvent.evaluation.holdout import CalibrationCheck, Holdout, error_bound
from resolvent.evaluation.separation import OutputSupport, Separation, Separations
from resolvent.evaluation.weakness import Weakness, WeakState, weaknesses

__all__ = [
    "AmbiguousSequence",
    "CalibrationCheck",
    "Completeness",
    "Diagnosis",
    "Evidence",
    "Experiment",
    "Finding",
    "Holdout",
    "MachineEvidence",
    "OutputSupport",
    "Separation",
    "Separations",
    "Severity",
    "TransitionSupport",
    "WeakState",
    "Weakness",
    "diagnose",
    "error_bound",
    "weaknesses",
]
