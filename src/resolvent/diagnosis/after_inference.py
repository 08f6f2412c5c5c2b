"""Moved."""

from resolvent.evaluation.diagnosis.inference_warnings import rare_moves  # noqa: F401
