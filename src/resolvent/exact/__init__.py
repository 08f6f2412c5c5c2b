"""Moved."""

from resolvent.inference.exact.certificate import Certificate  # noqa: F401
from resolvent.inference.exact.search import minimal_automaton  # noqa: F401
from resolvent.inference.exact.solver import import_solvers  # noqa: F401
