"""Moved."""

from resolvent.worlds.t_maze import (TMaze, TMazeRules, Walk, _CUES)  # noqa: F401
