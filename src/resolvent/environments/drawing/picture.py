"""Moved."""

from resolvent.worlds.drawing import (Cell, Colour, PALETTE, Picture, checklist)  # noqa: F401
