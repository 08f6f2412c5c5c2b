"""Moved."""

from resolvent.preprocess.supplement import supplement  # noqa: F401
