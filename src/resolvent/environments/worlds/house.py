"""Moved."""

from resolvent.worlds.house import (House, HousePicture, HouseRules, Pays, Visit, _CELLS, _COLOURS, _DOORS, _LABELS, _in_order)  # noqa: F401
