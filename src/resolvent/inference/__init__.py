"""Inference: samples → prefix tree → state merging → machines, by the paper's algorithm."""

from resolvent.inference.options import Options
from resolvent.inference.strategy import STRATEGIES, Strategy

__all__ = ["STRATEGIES", "Options", "Strategy"]
