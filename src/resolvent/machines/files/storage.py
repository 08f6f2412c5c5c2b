"""Moved."""

from resolvent.machines.io.json import decode, encode, load, save  # noqa: F401
