"""Moved."""

from resolvent._util.records import (ByValue, _equal)  # noqa: F401
