"""Moved."""

from resolvent.worlds.pixels import (_GLYPHS, _ROWS, _glyph, pixels)  # noqa: F401
