"""Moved."""

from resolvent.evaluation.experiments import telling_apart  # noqa: F401
