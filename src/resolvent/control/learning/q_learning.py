"""Moved."""

from resolvent.rl.trainer import ENGINES, q_learning  # noqa: F401
