"""Moved."""

from resolvent._util.parallel import ray_named  # noqa: F401
