"""Moved."""

from resolvent.planning.goals import Aim, States, aim_of  # noqa: F401
