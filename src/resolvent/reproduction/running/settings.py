"""Moved."""

from resolvent.paper.reproduce import (EXPERIMENTS, MEMORY_LIMIT_MB, Settings, settings)  # noqa: F401
