"""Moved."""

from resolvent.worlds.phase_grid import (Phase, PhaseGrid, PhaseGridRules, _LABELS, _LETTERS, _MOVES, _TASKS)  # noqa: F401
