"""Moved."""

from resolvent.traces.symbols import difference_text, place_text  # noqa: F401
