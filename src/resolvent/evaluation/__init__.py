"""Evaluation: estimate from traces the reliability of machines, and the missing data.

Input: machines and traces. Output: evidence, hold-out scores, experiments and findings.
"""

from resolvent.evaluation.completeness import Completeness, OpenHistory
from resolvent.evaluation.diagnosis.diagnostics import diagnose
from resolvent.evaluation.diagnosis.findings import Diagnosis, Finding, Severity
from resolvent.evaluation.evidence import Evidence, MachineEvidence
from resolvent.evaluation.experiments import Experiment
from resolvent.evaluation.gathering import are_training_traces, collect_evidence
from resolvent.evaluation.holdout import CalibrationCheck, Holdout, error_bound
from resolvent.evaluation.separation import Separation, Separations
from resolvent.evaluation.weakness import Weakness, WeakState, weaknesses
from resolvent.evaluation.weighing import OpenTransition, WeighedSeparations

__all__ = [
    "CalibrationCheck",
    "Completeness",
    "Diagnosis",
    "Evidence",
    "Experiment",
    "Finding",
    "Holdout",
    "MachineEvidence",
    "OpenHistory",
    "OpenTransition",
    "Separation",
    "Separations",
    "Severity",
    "WeakState",
    "Weakness",
    "WeighedSeparations",
    "are_training_traces",
    "collect_evidence",
    "diagnose",
    "error_bound",
    "weaknesses",
]
