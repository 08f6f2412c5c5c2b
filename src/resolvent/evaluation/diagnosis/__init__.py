"""Diagnosis: find properties of traces that prevent machines from holding on new traces.

Input: traces, or the counts of a replay. Output: findings, each with a severity and advice.
"""

from resolvent.evaluation.diagnosis.diagnostics import diagnose
from resolvent.evaluation.diagnosis.findings import Diagnosis, Finding, Severity
from resolvent.evaluation.diagnosis.inference_warnings import warnings_of

__all__ = ["Diagnosis", "Finding", "Severity", "diagnose", "warnings_of"]
