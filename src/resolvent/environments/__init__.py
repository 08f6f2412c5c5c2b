"""Worlds as Gymnasium environments, the paper's and others; importing this registers them."""

from typing import Any

import gymnasium as gym

from resolvent.environments.world import World
from resolvent.environments.worlds.cookie import Cookie
from resolvent.environments.worlds.house import House
from resolvent.environments.worlds.office import Office
from resolvent.environments.worlds.phase_grid import PhaseGrid
from resolvent.environments.worlds.random_world import RandomWorld
from resolvent.environments.worlds.symbol import Symbol
from resolvent.environments.worlds.t_maze import TMaze
from resolvent.environments.worlds.two_keys import TwoKeys

__all__ = [
    "Cookie",
    "House",
    "Office",
    "PhaseGrid",
    "RandomWorld",
    "Symbol",
    "TMaze",
    "TwoKeys",
    "World",
]

_WORLDS: dict[str, tuple[type[World], dict[str, Any], int | None]] = {
    "House": (House, {"pays": "sofa"}, None),
    "HouseInterference": (House, {"pays": "cyanroom"}, None),
    "PhaseGrid3": (PhaseGrid, {"size": 3}, None),
    "PhaseGrid4": (PhaseGrid, {"size": 4}, None),
    "PhaseGrid5": (PhaseGrid, {"size": 5}, None),
    "RandomWorld": (RandomWorld, {}, None),
    "OfficeCoffee": (Office, {"task": "coffee"}, 1_000),
    "OfficeMail": (Office, {"task": "mail"}, 1_000),
    "OfficeBoth": (Office, {"task": "both"}, 1_000),
    "OfficePatrol": (Office, {"task": "patrol"}, 1_000),
    "Cookie": (Cookie, {}, 5_000),
    "TwoKeys": (TwoKeys, {}, 5_000),
    "Symbol": (Symbol, {}, 5_000),
    "TMaze": (TMaze, {}, None),
}
"""By name: the world, its arguments, and after how many steps `gym.make` cuts episodes."""


def _register() -> None:
    for name, (world, arguments, max_steps) in _WORLDS.items():
        # Gymnasium warns on a second registration, which a reload would cause.
        if f"resolvent/{name}-v0" not in gym.registry:
            gym.register(
                f"resolvent/{name}-v0",
                entry_point=f"{world.__module__}:{world.__name__}",
                vector_entry_point=f"resolvent.environments.vector_worlds:Vector{world.__name__}",
                kwargs=arguments,
                max_episode_steps=max_steps,
            )


_register()
