"""Moved."""

from resolvent.paper.tables import (PARTS, Table, _LAST, _ablation_cell, _here, _memory, _paid, _reached, _repetitions, _times, _within, ablation_table, baseline_table, policy_table, shares, tables)  # noqa: F401
