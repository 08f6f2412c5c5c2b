"""Moved."""

from resolvent.paper.baselines.clock import (Clock, Listener, _SECONDS_BETWEEN_REPORTS, now)  # noqa: F401
