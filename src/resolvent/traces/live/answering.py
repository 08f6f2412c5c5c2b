"""Moved."""

from resolvent.rl.env import check_info, ended, of_reset, of_step, telling  # noqa: F401
