"""Moved."""

from resolvent.traces.io.paper_format import paper_lines, read_paper_lines  # noqa: F401
