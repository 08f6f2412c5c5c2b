"""Moved."""

from resolvent._util.parallel import TASKS_PER_SLOT  # noqa: F401
