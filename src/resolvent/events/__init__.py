"""Events: traces without labels → which observations or actions are events, in classes."""

from resolvent.events.finding import FoundEvents, find_events

__all__ = ["FoundEvents", "find_events"]
