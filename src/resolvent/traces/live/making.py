"""Moved."""

from resolvent.rl.make_env import NamedEnvironment, check_maker  # noqa: F401
