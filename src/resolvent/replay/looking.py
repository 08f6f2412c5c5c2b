"""Moved."""

from resolvent.replay.scan import LEAST_STEPS, Look, Looking, Pooling, digested  # noqa: F401
