"""Moved."""

from resolvent.paper.experiments.comparison import (EXPERIMENT, GRIDS, compare, runs)  # noqa: F401
