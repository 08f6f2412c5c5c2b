"""Moved."""

from resolvent.paper.tables import (ABLATION, Cell, MEAN_LENGTHS, PLOTTED, PROCESSOR, SECONDS)  # noqa: F401
