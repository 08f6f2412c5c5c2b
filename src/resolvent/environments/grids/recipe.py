"""Moved."""

from resolvent.worlds.grid_generator import (_BACK_CHANCE, _DRAWS, _FORWARD_CHANCE, _blocked, _check, _labels, _reward_machine, _transition_machine, random_grid_world, shortcoming)  # noqa: F401
