"""Moved."""

from resolvent.paper.baselines.hmm import hmm  # noqa: F401
