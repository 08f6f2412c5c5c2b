"""The vector version of each world, under a name that Gymnasium can load."""

from resolvent.environments.vector_world import VectorWorld
from resolvent.environments.worlds.cookie import Cookie
from resolvent.environments.worlds.house import House
from resolvent.environments.worlds.office import Office
from resolvent.environments.worlds.phase_grid import PhaseGrid
from resolvent.environments.worlds.random_world import RandomWorld
from resolvent.environments.worlds.symbol import Symbol
from resolvent.environments.worlds.t_maze import TMaze
from resolvent.environments.worlds.two_keys import TwoKeys


class VectorHouse(VectorWorld):
    """Many houses."""

    world = House


class VectorPhaseGrid(VectorWorld):
    """Many phase grids."""

    world = PhaseGrid


class VectorRandomWorld(VectorWorld):
    """Many copies of one random world."""

    world = RandomWorld


class VectorOffice(VectorWorld):
    """Many offices."""

    world = Office


class VectorCookie(VectorWorld):
    """Many cookie worlds."""

    world = Cookie


class VectorTwoKeys(VectorWorld):
    """Many two-keys worlds."""

    world = TwoKeys


class VectorTMaze(VectorWorld):
    """Many T-mazes."""

    world = TMaze


class VectorSymbol(VectorWorld):
    """Many symbol worlds."""

    world = Symbol
