"""Moved."""

from resolvent._util.html import (MOST_ROWS, Pictured, _LEFT, _MOST_LINES, _PIXELS, _cell, _safe, _table, figures, lines, panel, table)  # noqa: F401
