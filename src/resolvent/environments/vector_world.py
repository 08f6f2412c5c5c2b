"""Moved."""

from resolvent.worlds.vector_env import (Batch, VectorWorld, _objects)  # noqa: F401
