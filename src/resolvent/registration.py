"""Names of our worlds → Gymnasium's registry, whether or not Gymnasium is imported yet."""

import sys
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

WORLDS: dict[str, tuple[str, dict[str, object], int | None]] = {
    "House": ("house:House", {"goal": "sofa"}, None),
    "HouseInterference": ("house:House", {"goal": "cyanroom"}, None),
    "PhaseGrid3": ("grids:PhaseGrid", {"size": 3}, None),
    "PhaseGrid4": ("grids:PhaseGrid", {"size": 4}, None),
    "PhaseGrid5": ("grids:PhaseGrid", {"size": 5}, None),
    "RandomWorld": ("random_world:RandomWorld", {}, None),
    "OfficeCoffee": ("grids:Office", {"task": "coffee"}, 1_000),
    "OfficeMail": ("grids:Office", {"task": "mail"}, 1_000),
    "OfficeBoth": ("grids:Office", {"task": "both"}, 1_000),
    "OfficePatrol": ("grids:Office", {"task": "patrol"}, 1_000),
    "Cookie": ("lrm_house:Cookie", {}, 5_000),
    "TwoKeys": ("lrm_house:TwoKeys", {}, 5_000),
    "Symbol": ("lrm_house:Symbol", {}, 5_000),
    "TMaze": ("grids:TMaze", {}, None),
}
"""By name: the world's class, its arguments, and the step at which `gym.make` truncates."""


def register() -> None:
    """Register `resolvent/House-v0` and the other worlds with Gymnasium, which is imported."""
    from gymnasium.envs.registration import register, registry

    for name, (path, arguments, max_steps) in WORLDS.items():
        # Gymnasium warns of a second registration, which a reload would cause.
        if f"resolvent/{name}-v0" not in registry:
            register(
                f"resolvent/{name}-v0",
                entry_point=f"resolvent.worlds.{path}",
                vector_entry_point=f"resolvent.worlds.{path.replace(':', ':Vector')}",
                kwargs=arguments,
                max_episode_steps=max_steps,
            )


def register_when_possible() -> None:
    """Register our worlds at once if Gymnasium is imported, otherwise right after its import.

    So `import resolvent` does not import Gymnasium, and `gym.make` knows our worlds in any order
    of imports.
    """
    if "gymnasium" in sys.modules:
        register()
    elif not any(isinstance(finder, _AfterGymnasium) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterGymnasium())


class _AfterGymnasium:
    """Finds Gymnasium as the other finders do, and registers our worlds after its import.

    It stays among the finders: another thread that iterates them would miss one if it were removed.
    """

    def __init__(self) -> None:
        self._used = False

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> "ModuleSpec | None":
        """Return the spec of Gymnasium, with the registration added; None for other modules."""
        if self._used or name != "gymnasium":
            return None
        self._used = True
        from importlib.util import find_spec

        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                register()

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec
