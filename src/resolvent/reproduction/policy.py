"""Moved."""

from resolvent.paper.experiments.policy import (BIN, EVALUATE_EVERY, EXPERIMENT, GAMMA, LEARNERS, Learner, MAX_STEPS, PAPER_EPISODES, SETTING, TRACES, learn, runs)  # noqa: F401
