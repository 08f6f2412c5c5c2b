"""Moved."""

from resolvent.paper.baselines.aalpy import (M, ORDERS, _Run, _import_merging, aalpy)  # noqa: F401
