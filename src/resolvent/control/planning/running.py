"""Moved."""

from resolvent.rl.run_plan import Runs, policy_in, run  # noqa: F401
