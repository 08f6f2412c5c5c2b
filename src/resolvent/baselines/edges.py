"""Moved."""

from resolvent.paper.baselines.edge_machine import (EdgesUsed, KEYS, KeyedRewardMachine, canonical, edges_used, keyed_machine, label_machine, read_at_steps, renumbered, states_before)  # noqa: F401
