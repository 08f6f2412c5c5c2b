"""Moved."""

from resolvent.inference.cross_validation import HeldOut, held_out  # noqa: F401
