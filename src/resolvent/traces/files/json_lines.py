"""Moved."""

from resolvent.traces.io.jsonl import json_lines, read_json_lines  # noqa: F401
