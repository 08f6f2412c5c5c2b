"""Moved."""

from resolvent.worlds import Cookie, House, Office, PhaseGrid, RandomWorld, Symbol, TMaze, TwoKeys, World  # noqa: F401
