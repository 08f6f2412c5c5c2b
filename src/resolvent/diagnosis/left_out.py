"""Moved."""

from resolvent.evaluation.diagnosis.inference_warnings import LEFT_OUT, left_out  # noqa: F401
