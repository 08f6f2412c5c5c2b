"""Worlds as Gymnasium environments, the paper's and others; importing this registers them."""

from resolvent.environments.world import World
from resolvent.environments.worlds.cookie import Cookie
from resolvent.environments.worlds.house import House
from resolvent.environments.worlds.office import Office
from resolvent.environments.worlds.phase_grid import PhaseGrid
from resolvent.environments.worlds.random_world import RandomWorld
from resolvent.environments.worlds.symbol import Symbol
from resolvent.environments.worlds.t_maze import TMaze
from resolvent.environments.worlds.two_keys import TwoKeys
from resolvent.registration import register

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
