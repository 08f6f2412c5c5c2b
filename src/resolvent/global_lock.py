"""Moved."""

from resolvent._util.startup import (ADVICE, check, is_kept_off, is_off)  # noqa: F401
