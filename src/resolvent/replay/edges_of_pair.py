"""Moved."""

from resolvent.replay.edge_rewards import rewards_on_edges  # noqa: F401
