"""Moved."""

from resolvent._util.progress import (FractionListener, Listener, Progress)  # noqa: F401
