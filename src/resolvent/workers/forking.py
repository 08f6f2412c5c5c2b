"""Moved."""

from resolvent._util.processes import in_child  # noqa: F401
