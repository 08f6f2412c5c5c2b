"""The vector version of each world, under a name that Gymnasium can load."""

from resolvent.environments.cookie import Cookie
from resolvent.environments.house import House
from resolvent.environments.office import Office
from resolvent.environments.phase_grid import PhaseGrid
from resolvent.environments.random_world import RandomWorld
from resolvent.environments.t_maze import TMaze
from resolvent.environments.two_keys import TwoKeys
from resolvent.environments.vector_world import VectorWorld


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
