"""Moved."""

from resolvent.machines.tables import is_among, look_up, no_codes, no_numbers, places  # noqa: F401
