"""Moved."""

from resolvent.paper.summary import (Record, Summary, number, percent, spread, taken)  # noqa: F401
