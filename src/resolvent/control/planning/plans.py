"""Moved."""

from resolvent.planning.plan import Plan, plan  # noqa: F401
