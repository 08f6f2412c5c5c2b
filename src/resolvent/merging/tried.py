"""Moved."""

from resolvent.inference.attempts import CHOSEN, GIVEN_UP, LONGER, OUT_OF_TIME, Tried  # noqa: F401
