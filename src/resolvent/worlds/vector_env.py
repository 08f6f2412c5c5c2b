"""Copies of a built-in world side by side: one NumPy look-up steps them all."""

from typing import Any, ClassVar

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from resolvent.errors import OptionError
from resolvent.traces.vocabulary import Codes
from resolvent.worlds.env import World, find_start
from resolvent.worlds.grids import Office, PhaseGrid, TMaze
from resolvent.worlds.house import House
from resolvent.worlds.lrm_house import Cookie, Symbol, TwoKeys
from resolvent.worlds.random_world import RandomWorld

Batch = NDArray[Any]


class VectorWorld(VectorEnv[Batch, Batch, Batch]):
    """`num_envs` copies of a `world`, in any of Gymnasium's three autoreset modes.

    Infos are batched as in Gymnasium: `labels` is an array of sets, `_labels` marks the copies
    for which it holds.
    """

    world: ClassVar[type[World]]
    resets_by_mask: ClassVar[bool] = True
    """`options["reset_mask"]` works in every mode, so that collecting can end single episodes."""

    @classmethod
    def of(cls, world: type[World]) -> "type[VectorWorld]":
        """Return the class of vectors of a world, named `Vector` and the world's name."""
        return type(f"Vector{world.__name__}", (cls,), {"world": world, "__module__": __name__})

    def __init__(
        self,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        **arguments: Any,
    ) -> None:
        if num_envs < 1:
            raise OptionError(f"num_envs={num_envs}: make at least one")
        if max_episode_steps is not None and max_episode_steps < 1:
            raise OptionError(f"max_episode_steps={max_episode_steps}: allow at least one step")
        self.num_envs = num_envs
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**self.world.metadata, "autoreset_mode": self.autoreset_mode}
        self.max_episode_steps = max_episode_steps
        self.render_mode = render_mode
        self._world = self.world(render_mode=render_mode, **arguments)
        self.mechanics = self._world.mechanics
        self.observation_names = self._world.observation_names
        self.action_names = self._world.action_names
        self.single_observation_space = self._world.observation_space
        self.single_action_space = self._world.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._label_of = _objects(self.mechanics.labels)
        self._state = np.full(num_envs, self.mechanics.starts[0], np.int32)
        self._steps = np.zeros(num_envs, np.int64)
        self._over = np.zeros(num_envs, np.bool_)
        self._chance: np.random.Generator | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Batch, dict[str, Any]]:
        """Begin episodes in all copies, or in those of `options["reset_mask"]`."""
        super().reset(seed=seed)
        if seed is not None:
            self._chance = None
        options = dict(options or {})
        mask = options.pop("reset_mask", np.ones(self.num_envs, np.bool_))
        if not isinstance(mask, np.ndarray) or mask.shape != (self.num_envs,):
            raise OptionError(f"options['reset_mask'] must be an array of {self.num_envs} bools")
        self._begin(mask.astype(np.bool_), options.get("start"))
        return self._observations(), self._info(mask.astype(np.bool_))

    def step(self, actions: Batch) -> tuple[Batch, Batch, Batch, Batch, dict[str, Any]]:
        """Step all copies; finished ones are handled by the autoreset mode."""
        actions = np.asarray(actions)
        if not self.action_space.contains(actions):
            raise OptionError(
                f"actions must be {self.num_envs} ints from 0 to {len(self.action_names) - 1}"
            )
        over = self._over
        if self.autoreset_mode is AutoresetMode.DISABLED and over.any():
            raise OptionError(
                f"episode {int(np.argmax(over))} of the batch is over: reset it with "
                "options={'reset_mask': ...} before the next step"
            )
        before, tables = self._state, self.mechanics
        realized = self._realized(actions)
        rewards = np.where(over, 0.0, tables.reward[before, realized])
        terminated = tables.ends[before, realized] & ~over
        self._state = np.where(over, before, tables.next_state[before, realized])
        self._steps += 1
        truncated = np.zeros(self.num_envs, np.bool_)
        if self.max_episode_steps is not None:
            truncated = (self._steps >= self.max_episode_steps) & ~over
        self._over = terminated | truncated
        if self.autoreset_mode is AutoresetMode.NEXT_STEP:
            self._begin(over)
        info = self._info(np.ones(self.num_envs, np.bool_))
        if self.autoreset_mode is AutoresetMode.SAME_STEP and self._over.any():
            info = self._restarted(info)
        return self._observations(), rewards, terminated, truncated, info

    def render(self) -> tuple[Any, ...] | None:
        """Draw every copy, as `render_mode` says."""
        if self.render_mode is None:
            return None
        return tuple(self._world.draw(int(state)) for state in self._state)

    def _realized(self, actions: Batch) -> Batch:
        """Return the realized actions of the copies, each with its own draws."""
        if not self.mechanics.draws:
            return actions
        if self._chance is None:
            (self._chance,) = self.np_random.spawn(1)
        drawn = self._chance.random((self.num_envs, self.mechanics.draws))
        return self.mechanics.realize(actions, drawn)

    def _begin(self, chosen: NDArray[np.bool_], start: Any = None) -> None:
        count = int(np.count_nonzero(chosen))
        if count == 0:
            return
        starts = self.mechanics.starts
        if start is None:
            self._state[chosen] = starts[self.np_random.integers(len(starts), size=count)]
        else:
            self._state[chosen] = find_start(self.mechanics, start)
        self._steps[chosen] = 0
        self._over[chosen] = False

    def _restarted(self, info: dict[str, Any]) -> dict[str, Any]:
        """Restart finished episodes; their last observations and infos go into the info."""
        over = self._over.copy()
        final = np.full(self.num_envs, None, object)
        final[over] = self._observations()[over]
        ended = {**info, "_labels": over}
        self._begin(over)
        return {
            **self._info(np.ones(self.num_envs, np.bool_)),
            "final_obs": final,
            "_final_obs": over,
            "final_info": ended,
            "_final_info": over,
        }

    def _observations(self) -> Batch:
        return self.mechanics.observation_of[self._state].astype(np.int64)

    def _info(self, has_labels: NDArray[np.bool_]) -> dict[str, Any]:
        codes: Codes = self.mechanics.label_of[self._state]
        return {"labels": self._label_of[codes], "_labels": has_labels}


def _objects(values: Any) -> Batch:
    """Return an array of objects that NumPy does not look into."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


VectorHouse = VectorWorld.of(House)
VectorPhaseGrid = VectorWorld.of(PhaseGrid)
VectorRandomWorld = VectorWorld.of(RandomWorld)
VectorOffice = VectorWorld.of(Office)
VectorCookie = VectorWorld.of(Cookie)
VectorTwoKeys = VectorWorld.of(TwoKeys)
VectorTMaze = VectorWorld.of(TMaze)
VectorSymbol = VectorWorld.of(Symbol)
