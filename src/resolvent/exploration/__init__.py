"""An environment → a way to act with a proof, or what is still open: exploring on purpose.

Everything else here works from traces that somebody collected. This room collects them
itself: it goes where something is worth knowing, mends the machines when the world
surprises them, and says why it stops.
"""

from resolvent.exploration.explorer import Explorer
from resolvent.exploration.solution import Round, Solved
from resolvent.exploration.solve import solve
from resolvent.exploration.stopping import Statement

__all__ = ["Explorer", "Round", "Solved", "Statement", "solve"]
