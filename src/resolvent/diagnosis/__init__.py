"""Diagnosis: traces → findings, what stands in the way of machines that hold on fresh traces."""

from resolvent.diagnosis.after_inference import warnings_of
from resolvent.diagnosis.diagnosing import diagnose
from resolvent.diagnosis.findings import Diagnosis, Finding, Severity

__all__ = ["Diagnosis", "Finding", "Severity", "diagnose", "warnings_of"]
