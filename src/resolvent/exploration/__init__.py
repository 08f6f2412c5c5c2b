"""Active learning: an environment → a plan with a proof, or with what is still open.

It chooses the steps that are worth knowing, repairs the machines when a step contradicts them, and
says why it stops.
"""

from resolvent.exploration.explorer import Explorer
from resolvent.exploration.solution import Round, Solution
from resolvent.exploration.solve import solve
from resolvent.exploration.stopping import Statement

__all__ = ["Explorer", "Round", "Solution", "Statement", "solve"]
