"""Moved."""

from resolvent.rl.q_table import Curve, check_curve_name  # noqa: F401
