"""Moved."""

from resolvent.rl.q_table import FORMAT, VERSION, _File  # noqa: F401
