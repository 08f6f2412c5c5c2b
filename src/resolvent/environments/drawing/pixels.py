"""Moved."""

from resolvent.worlds.pixels import (Pixels, _AGENT, _CHARACTER, _DOT, _FLOOR, _GRID, _INK, _LINE, _MARGIN, _PAPER, _WALL, _WIDTH, _darker, _draw_cell, _draw_disc, _draw_frame, _draw_grid, _draw_legend, _draw_text, _entry_width, _legend_lines, as_pixels)  # noqa: F401
