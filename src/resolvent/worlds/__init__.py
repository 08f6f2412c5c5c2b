"""Built-in worlds as Gymnasium environments: those of the paper and classics of memory.

Importing this package registers them with Gymnasium.
"""

from resolvent.registration import register
from resolvent.worlds.env import World
from resolvent.worlds.grids import Office, PhaseGrid, TMaze
from resolvent.worlds.house import House
from resolvent.worlds.lrm_house import Cookie, Symbol, TwoKeys
from resolvent.worlds.random_world import RandomWorld

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
