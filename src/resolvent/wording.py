"""Moved."""

from resolvent._util.text import (_RAISED, _visible_character, amount, listed, odds_text, percent, short, visible)  # noqa: F401
