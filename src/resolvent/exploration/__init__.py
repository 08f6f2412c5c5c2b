"""Active learning: an environment → a plan with a proof, or with the steps that are still open.

It chooses informative steps, repairs the machines when a step contradicts them, and states why it
stops.
"""

from resolvent.exploration.explorer import Explorer
from resolvent.exploration.solution import Round, Solution
from resolvent.exploration.solve import solve
from resolvent.exploration.stopping import Guarantee

__all__ = ["Explorer", "Guarantee", "Round", "Solution", "solve"]
