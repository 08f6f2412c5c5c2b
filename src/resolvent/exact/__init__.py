"""Exact: `SampleSet` + a machine that explains it → the smallest machine, with a certificate."""

from resolvent.exact.certificate import Certificate
from resolvent.exact.colouring import import_solvers
from resolvent.exact.search import minimal_automaton

__all__ = ["Certificate", "import_solvers", "minimal_automaton"]
