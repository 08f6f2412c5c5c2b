"""Moved."""

from resolvent.worlds.symbol import (ARROWS, SYMBOLS, Search, Symbol, SymbolRules, _AT, _ROW, _detected)  # noqa: F401
