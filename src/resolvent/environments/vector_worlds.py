"""Moved."""

from resolvent.worlds.vector_env import (VectorCookie, VectorHouse, VectorOffice, VectorPhaseGrid, VectorRandomWorld, VectorSymbol, VectorTMaze, VectorTwoKeys)  # noqa: F401
