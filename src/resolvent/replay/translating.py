"""Moved."""

from resolvent.replay.replaying import in_machine_codes  # noqa: F401
