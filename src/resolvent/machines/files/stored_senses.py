"""Moved."""

from resolvent.machines.io.schema import StoredSenses, senses_in, stored_senses  # noqa: F401
