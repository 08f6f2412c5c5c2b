"""Moved."""

from resolvent._util.ray import FAN_IN, part_of_ray  # noqa: F401
