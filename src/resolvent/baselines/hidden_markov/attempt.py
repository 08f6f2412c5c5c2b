"""Moved."""

from resolvent.paper.baselines.hmm import (Attempt, PUBLISHED_THRESHOLD, _THRESHOLDS, count_wrong_rewards, shares_of_moves)  # noqa: F401
