"""Moved."""

from resolvent.inference.conflict import Asking, explain, fitting_timing  # noqa: F401
