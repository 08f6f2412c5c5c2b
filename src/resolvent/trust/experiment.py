"""Moved."""

from resolvent.evaluation.experiments import seldom_taken  # noqa: F401
