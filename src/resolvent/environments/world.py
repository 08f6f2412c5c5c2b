"""Moved."""

from resolvent.worlds.env import (Code, Picture, World, start_showing)  # noqa: F401
