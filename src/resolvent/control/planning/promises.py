"""Moved."""

from resolvent.planning.value_bounds import (  # noqa: F401
    Contradiction,
    contradictions,
    in_all,
    returns_of,
    too_large_to_add_up,
)
