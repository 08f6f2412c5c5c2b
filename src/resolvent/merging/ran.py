"""Moved."""

from resolvent.inference.attempts import FOUND, IMPOSSIBLE, STOPPED, UNDECIDED, UNIQUE, Ran  # noqa: F401
