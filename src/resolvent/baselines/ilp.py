"""Moved."""

from resolvent.paper.baselines.ilp import (MODES, _Run, ilp)  # noqa: F401
