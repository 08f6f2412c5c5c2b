"""Moved."""

from resolvent.worlds.grid_world import (GridTables, GridWorld, MOVES, _STEP_BYTES, _reached, _with_no_event)  # noqa: F401
