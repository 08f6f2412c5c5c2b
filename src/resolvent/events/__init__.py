"""Moved."""

from resolvent.preprocess.event_discovery import FoundEvents, find_events  # noqa: F401
