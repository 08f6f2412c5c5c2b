"""Moved."""

from resolvent._util.validation import (EXPANSION, Limits, _DEFAULTS, _UNITS, _number, _raised, _variable, bytes_text, check_expansion, check_limit, check_table, how_to_raise, limit, ran_out_of_memory, telling_of_memory)  # noqa: F401
