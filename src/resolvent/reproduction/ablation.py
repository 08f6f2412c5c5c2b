"""Moved."""

from resolvent.paper.experiments.ablation import (EXPERIMENT, PARTS, SETTINGS, STRATEGIES, WORLD, ablate, runs)  # noqa: F401
