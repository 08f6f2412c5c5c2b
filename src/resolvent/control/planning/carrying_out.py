"""Moved."""

from resolvent.rl.experiment_policy import Trial, carry_out  # noqa: F401
