"""Moved."""

from resolvent._util.processes import CORES, cores, sharing_cores, take_cores  # noqa: F401
