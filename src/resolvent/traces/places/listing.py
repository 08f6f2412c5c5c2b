"""Moved."""

from resolvent.traces.scan.listing import columns_at, files_of, is_glob, place_text  # noqa: F401
