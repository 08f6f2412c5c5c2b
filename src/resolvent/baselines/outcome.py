"""Moved."""

from resolvent.paper.baselines.outcome import (Outcome, Status, wrong_rewards)  # noqa: F401
