"""Moved."""

from resolvent.rl.tabular import Evaluation  # noqa: F401
