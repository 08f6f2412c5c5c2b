"""Moved."""

from resolvent.worlds.mechanics import (Mechanics, Rules, S, _ROUNDING, _coded)  # noqa: F401
