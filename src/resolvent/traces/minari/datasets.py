"""Moved."""

from resolvent.traces.io.formats import minari_id  # noqa: F401
