"""Moved."""

from resolvent.exploration.explorer import Explorer  # noqa: F401
from resolvent.exploration.solution import Round, Solved  # noqa: F401
from resolvent.exploration.solve import solve  # noqa: F401
