"""Moved."""

from resolvent.paper.experiments.worlds import (FRESH_TRACES, _FRESH_SEED, about, gathered, judged, world_called)  # noqa: F401
