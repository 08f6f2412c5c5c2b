"""Moved."""

from resolvent.inference.conflict import explain  # noqa: F401
from resolvent.preprocess.contradictions import Asking, fitting_timing  # noqa: F401
