"""Moved."""

from resolvent.worlds.office import (Errand, Office, OfficeRules, Place, Task, _FETCHED, _LETTERS, _MOVES, _NAME_AT, _PLACES, _ROUND, _WALLS, _drawn, _walls)  # noqa: F401
