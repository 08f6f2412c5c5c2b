"""Moved."""

from resolvent.paper.processes import (Clock, SECONDS_BETWEEN_LOOKS, SECONDS_OF_PATIENCE, WALL_SECONDS_A_SECOND, _ENVIRONMENT, _FINISHED, _MARK, _STARTED, _THREADS, _Watch, _context, _end_with_parent, _ending, _interruptions_wait, _kept, _peak_mb, _work, record_of, run_apart)  # noqa: F401
