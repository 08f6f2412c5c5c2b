"""Moved."""

from resolvent.inference.counterexamples import observed_termination, rebuilt  # noqa: F401
