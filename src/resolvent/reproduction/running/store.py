"""Moved."""

from resolvent.paper.store import (FORMAT, Results, Store, _ABOUT, _LIMITS, _PACKAGES, _check_same, _processor, _read, _version, _write, here)  # noqa: F401
