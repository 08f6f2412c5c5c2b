"""Exact: `SampleSet` + a machine that explains it → the smallest machine, with a certificate."""

from resolvent.exact.certificate import Certificate
from resolvent.exact.search import minimal_automaton

__all__ = ["Certificate", "minimal_automaton"]
