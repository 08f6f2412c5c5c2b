"""Moved."""

from resolvent.worlds.drawing import (_JOINS, _Layout, _characters, _joined, _lines, _touches_floor, as_text)  # noqa: F401
