"""Moved."""

from resolvent.paper.report import (BEGIN, END, _LEFT_OUT, compact, section, with_section)  # noqa: F401
