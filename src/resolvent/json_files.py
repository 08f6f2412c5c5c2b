"""Moved."""

from resolvent._util.files import (T, decode_json, read_content, read_json)  # noqa: F401
