"""Moved."""

from resolvent.traces.source import Gap, gaps_text, tell_of  # noqa: F401
