"""Moved."""

from resolvent.traces.io.arrow import first_line, known_types  # noqa: F401
