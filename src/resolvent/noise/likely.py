"""Moved."""

from resolvent.noise.outputs import PART  # noqa: F401
