"""Moved."""

from resolvent.rl.tabular import WorldView, world_behind  # noqa: F401
