"""Moved."""

from resolvent.worlds.lrm_house import (CORNERS, FLOOR, MOVES, START, WALLS, _ROOMS, _ROOM_OF, moved, room_of, seen_from, side, view)  # noqa: F401
