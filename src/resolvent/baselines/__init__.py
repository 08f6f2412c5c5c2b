"""Moved."""

from resolvent.paper.baselines import KeyedRewardMachine, Outcome, aalpy, hmm, ilp, lrm  # noqa: F401
