"""Moved."""

from resolvent.evaluation.observed import question_of  # noqa: F401
