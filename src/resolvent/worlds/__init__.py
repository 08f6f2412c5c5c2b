"""Built-in worlds as Gymnasium environments: those of the paper and classics of memory.

Importing this package registers them with Gymnasium.
"""

from resolvent.registration import register
from resolvent.worlds.cookie import Cookie
from resolvent.worlds.env import World
from resolvent.worlds.house import House
from resolvent.worlds.office import Office
from resolvent.worlds.phase_grid import PhaseGrid
from resolvent.worlds.random_world import RandomWorld
from resolvent.worlds.symbol import Symbol
from resolvent.worlds.t_maze import TMaze
from resolvent.worlds.two_keys import TwoKeys

__all__ = [
    "Cookie",
    "House",
    "Office",
    "PhaseGrid",
    "RandomWorld",
    "Symbol",
    "TMaze",
    "TwoKeys",
    "World",
]

register()
