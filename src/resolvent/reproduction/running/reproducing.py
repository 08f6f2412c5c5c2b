"""Moved."""

from resolvent.paper.reproduce import (Finished, Listener, _Apart, _side_by_side, reproduce)  # noqa: F401
