"""Built-in worlds as Gymnasium environments, alone or side by side: tables in, steps out."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from resolvent._util.validation import check_at_least, quoted
from resolvent.errors import OptionError
from resolvent.machines import MachinePair
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces.symbols import Symbol
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes
from resolvent.worlds.drawing import Picture
from resolvent.worlds.mechanics import Mechanics

Code = int | np.int64  # an observation or action: steps give ints, Discrete spaces draw np.int64
Batch = NDArray[Any]


class World(gym.Env[Code, Code]):
    """An environment whose mechanics are tables.

    Observations and actions are numbers; `observation_names` and `action_names`
    are their names, and `info["labels"]` holds the current events. A reset draws
    one of the starts, or uses `options={"start": observation}`. With probability
    `slip` a step executes one of the other actions, all equally likely.

    Subclasses define the states (`mechanics`), when labels are read (`timing`), and
    the drawing (`picture`).
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": 4,
    }
    timing: ClassVar[LabelTiming] = LabelTiming.CURRENT

    def __init__(
        self, mechanics: Mechanics, render_mode: str | None = None, *, slip: float = 0.0
    ) -> None:
        if not 0 <= slip < 1:
            raise OptionError(f"slip={slip}: give the share of steps that slip, from 0 to below 1")
        if slip > 0:
            mechanics = replace(mechanics, slip=float(slip))
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise OptionError(f"render_mode={quoted(render_mode)}: use 'ansi', 'rgb_array' or None")
        self.render_mode = render_mode
        self.mechanics = mechanics
        self.observation_space = spaces.Discrete(len(mechanics.observations))
        self.action_space = spaces.Discrete(len(mechanics.actions))
        self._state = int(mechanics.starts[0])
        self._chance: np.random.Generator | None = None
        self._draws = mechanics.draws
        # Plain lists: a look-up in them takes a tenth of one in an array.
        self._next_state = mechanics.next_state.tolist()
        self._reward = mechanics.reward.tolist()
        self._ends = mechanics.ends.tolist()
        self._observation_of = mechanics.observation_of.tolist()
        self._info = [{"labels": mechanics.labels[code]} for code in mechanics.label_of.tolist()]

    @property
    def observation_names(self) -> tuple[Symbol, ...]:
        """The names of observations in traces."""
        return tuple(self.mechanics.observations)

    @property
    def action_names(self) -> tuple[str, ...]:
        """The names of actions in traces."""
        return tuple(self.mechanics.actions)

    def machines(self) -> MachinePair:
        """Return the true machines of this world, for comparison."""
        return self.mechanics.machines(self.timing)

    @property
    def state(self) -> int:
        """The true state, which no agent sees."""
        return self._state

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Code, dict[str, Any]]:
        """Begin an episode in a random start, or in the requested one."""
        super().reset(seed=seed)
        if seed is not None:
            self._chance = None
        if options and "start" in options:
            self._state = find_start(self.mechanics, options["start"])
        else:
            self._state = int(self.draw_starts(1)[0])
        return self._observation_of[self._state], dict(self._info[self._state])

    def draw_starts(self, episodes: int) -> Codes:
        """Draw the true initial states of this number of resets."""
        starts = self.mechanics.starts
        return starts[self.np_random.integers(len(starts), size=episodes)]

    @property
    def chance(self) -> np.random.Generator:
        """The generator of slips: seeded like the starts, but separate from them."""
        if self._chance is None:
            (self._chance,) = self.np_random.spawn(1)
        return self._chance

    def step(self, action: Code) -> tuple[Code, float, bool, bool, dict[str, Any]]:
        """Execute one of `action_names`, given by its position there."""
        if not self.action_space.contains(action):
            names = ", ".join(f"{code} {name}" for code, name in enumerate(self.action_names))
            raise OptionError(f"action {quoted(action)} is not one of {names}")
        state, realized = self._state, int(action)
        if self._draws:
            drawn = self.chance.random((1, self._draws))
            realized = int(self.mechanics.realize(np.array([realized]), drawn)[0])
        self._state = self._next_state[state][realized]
        return (
            self._observation_of[self._state],
            self._reward[state][realized],
            self._ends[state][realized],
            False,
            dict(self._info[self._state]),
        )

    @property
    def rolls_out(self) -> bool:
        """Whether steps follow the tables, so that whole rollouts give the same traces."""
        kind = type(self)
        return kind.step is World.step and kind.reset is World.reset

    def rollouts(
        self,
        episodes: int,
        seed: int | None,
        actions: np.random.Generator,
        max_steps: int | None,
        time_limit: int | None,
        progress: Callable[[float], object] | None,
    ) -> TraceSet:
        """Return the traces that resets and steps with these random numbers would give."""
        self.reset(seed=seed)
        starts = np.append(np.int32(self._state), self.draw_starts(episodes - 1))
        return self.mechanics.rollouts(
            starts, actions, max_steps, time_limit, progress, chance=self.chance
        )

    def render(self) -> str | NDArray[np.uint8] | None:
        """Draw the world as text or as an array of pixels, as `render_mode` says."""
        if self.render_mode is None:
            return None
        return self.draw(self._state)

    def draw(self, state: int) -> str | NDArray[np.uint8]:
        """Draw a true state, as `render_mode` says."""
        picture = self.picture(state)
        return picture.ansi() if self.render_mode == "ansi" else picture.rgb_array()

    def picture(self, state: int) -> Picture:
        """Return the drawing of a true state."""
        raise NotImplementedError


def find_start(mechanics: Mechanics, observation: Any) -> int:
    """Return the first start with an observation, which is given as in the environment."""
    observations = mechanics.observation_of[mechanics.starts]
    matching = np.flatnonzero(observations == observation)
    if not len(matching):
        starts = np.unique(observations).tolist()
        raise OptionError(
            f"options['start']={quoted(observation)}: no episode begins there; starts are "
            f"{', '.join(map(str, starts[:10]))}{', …' if len(starts) > 10 else ''}"
        )
    return int(mechanics.starts[matching[0]])


# --- Copies side by side -------------------------------------------------------------------------


class VectorWorld(VectorEnv[Batch, Batch, Batch]):
    """`num_envs` copies of a `world`, in any of Gymnasium's three autoreset modes.

    One look-up in the tables steps all copies. Infos are batched as in Gymnasium: `labels` is an
    array of sets, `_labels` marks the copies for which it holds.
    """

    world: ClassVar[type[World]]
    resets_by_mask: ClassVar[bool] = True
    """`options["reset_mask"]` works in every mode, so that collecting can end single episodes."""

    @classmethod
    def of(cls, world: type[World]) -> "type[VectorWorld]":
        """Return the class of vectors of a world, named `Vector` and the world's name."""
        name = f"Vector{world.__name__}"
        return type(name, (cls,), {"world": world, "__module__": world.__module__})

    def __init__(
        self,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        **arguments: Any,
    ) -> None:
        check_at_least(1, num_envs=num_envs, max_episode_steps=max_episode_steps)
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
        self._label_of = np.empty(len(self.mechanics.labels), object)
        self._label_of[:] = self.mechanics.labels
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
        self._begin(over)
        return {
            **self._info(np.ones(self.num_envs, np.bool_)),
            "final_obs": final,
            "_final_obs": over,
            "final_info": info | {"_labels": over},
            "_final_info": over,
        }

    def _observations(self) -> Batch:
        return self.mechanics.observation_of[self._state].astype(np.int64)

    def _info(self, has_labels: NDArray[np.bool_]) -> dict[str, Any]:
        labels = self._label_of[self.mechanics.label_of[self._state]]
        return {"labels": labels, "_labels": has_labels}
