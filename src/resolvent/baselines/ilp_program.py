"""Moved."""

from resolvent.paper.baselines.integer_program import (Floats, MOST_ENTRIES, Program, Steps, _Rows, _rewards_of_keys, build_program, moves_of)  # noqa: F401
