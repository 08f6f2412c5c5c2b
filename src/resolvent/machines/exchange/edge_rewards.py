"""Moved."""

from resolvent.machines.io.edge_rewards import ENDED, Edge, EdgeRewardMachine  # noqa: F401
