"""Moved."""

from resolvent.planning.deterministic import PayingCycle, Solution, solve  # noqa: F401
