"""Moved."""

from resolvent.traces.schema import NAME_COLUMNS, Name, Names, Roles, Spelled, as_names  # noqa: F401
