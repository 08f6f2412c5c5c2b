"""Moved."""

from resolvent.evaluation.diagnosis.diagnostics import diagnose  # noqa: F401
from resolvent.evaluation.diagnosis.findings import Diagnosis, Finding, Severity  # noqa: F401
from resolvent.evaluation.diagnosis.inference_warnings import warnings_of  # noqa: F401
