"""Moved."""

from resolvent.paper.run import (Run, function_called)  # noqa: F401
