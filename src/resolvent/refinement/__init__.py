"""Moved."""

from resolvent.inference.counterexamples import (  # noqa: F401
    compacted,
    counterexamples,
    covering,
    observed_termination,
    rebuilt,
)
