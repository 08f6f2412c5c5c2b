"""Moved."""

from resolvent.paper.baselines.lrm import (Compressed, Table, _Search, lrm, neighbours)  # noqa: F401
