"""Moved."""

from resolvent.rl.q_table import named, observed, shown_text  # noqa: F401
