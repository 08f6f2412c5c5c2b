"""Moved."""

from resolvent.traces.io.errors import first_line, known_types  # noqa: F401
