"""Moved."""

from resolvent.worlds.grid_files import (FORMAT, LARGEST, Position, T, VERSION, _AuthorsFile, _Environment, _File, _Labels, _RewardAutomaton, _RewardMachine, _TransitionAutomaton, _TransitionMachine, _Wrong, _checked, _converted, _decoded, _of_authors, _position, _set, _state, load_grid_world, save_grid_world)  # noqa: F401
