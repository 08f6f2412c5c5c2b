"""Moved."""

from resolvent.worlds.random_world import (RandomWorld, _LETTERS)  # noqa: F401
