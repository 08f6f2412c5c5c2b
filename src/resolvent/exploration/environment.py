"""The environment to explore, or several side by side: identify, reset and step them.

Input: an environment; then codes of actions. Output: resets and steps in the symbols and labels of
a learner. Environments that raise, return invalid values or change their spaces are refused here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import product
from typing import Any, Final, TypeAlias

import gymnasium as gym
import msgspec
import numpy as np

from resolvent.errors import ModelError, OptionError, TraceError, located, locating
from resolvent.exploration.learner import OBSERVATIONS, EncodedStep, set_labels
from resolvent.exploration.state import EpisodeState, LearnerState
from resolvent.planning.deterministic import overflow_error
from resolvent.rl.env import (
    AnyEnv,
    GuardedEnv,
    LabelSource,
    SymbolEncoder,
    checked_flag,
    checked_reset,
    checked_step,
    env_errors,
    label_method,
    time_limit,
)
from resolvent.rl.rollout import Step
from resolvent.rl.vector_env import (
    VectorEnv,
    VectorEpisodes,
    check_single_resets,
    one_environment,
    split,
)
from resolvent.traces.symbols import INFO_KEYS, Symbol, finite_reward

Shown: TypeAlias = tuple[Any, Mapping[str, Any]]  # the observation and the info of a reset
MAX_ACTIONS: Final = 1_000  # maximum number of actions
MAX_EPISODE_STEPS: Final = 2_000  # maximum length of an episode in an environment without a limit


def seed_of(*entropy: int) -> int:
    """Return the seed of an episode by the user's seed and the number of the episode."""
    return int(np.random.SeedSequence(entropy).generate_state(1)[0]) >> 1


def member_of(env: AnyEnv) -> AbstractContextManager[AnyEnv]:
    """Return the context of a single environment: this one, or one that stands for a vector."""
    return nullcontext(env) if isinstance(env, gym.Env) else one_environment(env)


def has_limit(env: AnyEnv) -> bool:
    """Return whether an environment, or each one in a vector, truncates episodes itself."""
    with member_of(env) as member:
        if isinstance(member, gym.Env):
            return time_limit(member) is not None
    return env.spec is not None and env.spec.max_episode_steps is not None


def spaces_of(env: AnyEnv) -> list[gym.Space[Any]]:
    """Return the action and observation spaces of an environment, or of each one in a vector."""
    prefix = "single_" if isinstance(env, gym.vector.VectorEnv) else ""
    spaces = []
    for name in (f"{prefix}action_space", f"{prefix}observation_space"):
        space = getattr(env, name, None)
        if not isinstance(space, gym.Space):
            raise OptionError(
                f"the environment {type(env.unwrapped).__name__} has no {name}: give it a "
                f"gymnasium.Space"
            )
        spaces.append(space)
    return spaces


def list_actions(space: gym.Space[Any]) -> list[Any]:
    """Return all values of an action space.

    >>> list_actions(gym.spaces.Discrete(3, start=1))
    [1, 2, 3]
    """
    if isinstance(space, gym.spaces.Discrete):
        parts = [range(int(space.start), int(space.start + space.n))]
    elif isinstance(space, gym.spaces.MultiDiscrete) and space.nvec.ndim == 1:
        start = np.asarray(getattr(space, "start", np.zeros_like(space.nvec)))
        parts = list(map(range, start.tolist(), (start + space.nvec).tolist()))
    elif isinstance(space, gym.spaces.MultiBinary) and isinstance(space.n, int | np.integer):
        parts = [range(2)] * int(space.n)
    else:
        raise OptionError(
            f"the action space is {space}: solve needs a finite one, so wrap the environment to "
            f"have gymnasium.spaces.Discrete actions"
        )
    if np.prod(list(map(len, parts)), dtype=float) > MAX_ACTIONS:
        raise OptionError(
            f"the action space is {space}, more than {MAX_ACTIONS:,} actions: wrap the environment "
            f"to have fewer"
        )
    if isinstance(space, gym.spaces.Discrete):
        return list(parts[0])
    return [np.array(choices, space.dtype) for choices in product(*parts)]


class EnvironmentId(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Identifies an environment.

    `name` is its Gymnasium id, or its class, and `arguments` are the plain values among its
    arguments.
    """

    name: str
    arguments: str
    actions: str
    observations: str

    @classmethod
    def of(cls, env: AnyEnv) -> "EnvironmentId":
        """Return the identity of an environment, for a vector that of one of its members.

        >>> import gymnasium as gym
        >>> identity = EnvironmentId.of(gym.make("resolvent/TMaze-v0", length=5))
        >>> identity.name, identity.arguments, identity.actions
        ('resolvent/TMaze-v0', 'length=5', 'Discrete(4)')
        """
        with member_of(env) as member:
            name, arguments = type(member.unwrapped).__qualname__.rsplit(".", 1)[-1], ""
            if member.spec is not None:
                name, values = member.spec.id, sorted(member.spec.kwargs.items())
                plain = (f"{key}={value!r}" for key, value in values if _is_plain(value))
                arguments = ", ".join(plain)
            return cls(name, arguments, *map(str, spaces_of(env)))

    def check(self, before: "EnvironmentId") -> None:
        """Refuse to resume in this environment from the result of another one."""
        for name in self.__struct_fields__:
            now, was = getattr(self, name) or "none", getattr(before, name) or "none"
            if now != was:
                verbs = ("is", "was") if name == "name" else ("are", "were")
                raise ModelError(
                    f"this is not the environment to resume in: its {name} {verbs[0]} {now} and "
                    f"{verbs[1]} {was}; use the same environment, or start in a new folder"
                )


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | int | float)


class CheckedEnv(GuardedEnv):
    """An environment that has to keep its spaces, and whose mistakes are trace errors."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self._spaces = spaces_of(env)

    def reset(self, **options: Any) -> Any:
        """Begin an episode."""
        shown = super().reset(**options)
        _check_spaces(self._spaces, self.env)
        return shown


class SingleRunner:
    """Runs one environment, which has number 0."""

    count = 1

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self.env = CheckedEnv(env)

    def reset(self, seeds: Mapping[int, int]) -> dict[int, Shown]:
        """Begin an episode by its seed."""
        return {0: self.env.reset(seed=seeds[0])}

    def step(self, actions: Sequence[Any]) -> list[Step]:
        """Take a step."""
        return [self.env.step(actions[0])]


class VectorRunner:
    """Runs the environments of a vector environment, in any autoreset mode.

    Every episode has its own seed: one that an autoreset began is begun again, so the mode makes
    no difference.
    """

    def __init__(self, envs: VectorEnv) -> None:
        check_single_resets(envs, "episodes cannot be begun one by one in environments")
        self.env, self.count = envs, int(envs.num_envs)
        inner = envs.unwrapped
        self._seeds_each = isinstance(inner, gym.vector.SyncVectorEnv | gym.vector.AsyncVectorEnv)
        self._begun = False
        self._live = VectorEpisodes(envs)
        self._spaces = spaces_of(envs)

    def reset(self, seeds: Mapping[int, int]) -> dict[int, Shown]:
        """Begin an episode in those environments that have a seed."""
        mask = np.full(self.count, not self._begun)  # none can be left out at first
        mask[list(seeds)] = True
        seed: Any = [seeds.get(index) for index in range(self.count)]
        if not self._seeds_each:  # an environment with one seed for all is seeded once
            seed = None if self._begun else min(seeds.items())[1]
        self._begun = True
        options = None if mask.all() else {"reset_mask": mask.copy()}  # theirs to change
        with env_errors("reset"):
            result = self.env.reset(seed=seed, options=options)
        observations, infos = checked_reset(result)
        _check_spaces(self._spaces, self.env)
        self._live.reset(mask)
        info_of = self._live.infos_at_reset(mask, infos)
        observation_of = split(self.env.observation_space, observations)
        return {index: (observation_of[index], info_of[index]) for index in sorted(seeds)}

    def step(self, actions: Sequence[Any]) -> list[Step]:
        """Take a step in every environment."""
        batch = np.array(actions, self.env.action_space.dtype)
        with env_errors("step"):
            result = self.env.step(batch)
        observations, rewards, terminations, truncations, infos = checked_step(result)
        self._live.step(terminations, truncations)
        reached = self._live.reached(observations, infos)
        info_of = self._live.infos_after_step(self._live.all, infos)
        infos_in_order = (info_of[index] for index in range(self.count))
        return list(zip(reached, rewards, terminations, truncations, infos_in_order, strict=True))


def _check_spaces(before: Sequence[gym.Space[Any]], env: AnyEnv) -> None:
    """Refuse an environment whose spaces have changed."""
    for name, was, now in zip(("actions", "observations"), before, spaces_of(env), strict=True):
        if was is not now and was != now:
            raise TraceError(
                f"the environment's {name} are {now} and were {was} at the beginning: define "
                f"spaces that contain every value and stay the same"
            )


class Encoder:
    """Translates what environments return into symbols and labels for a learner.

    `actions` are all actions by their codes, and `symbols` their symbols. `has_label_method` says
    that the environment reports labels by a method.
    """

    def __init__(
        self,
        env: AnyEnv,
        labeling_fn: Callable[..., Any] | None = None,
        observation_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        self.labeling_fn, self.observation_fn = labeling_fn, observation_fn
        with member_of(env) as single:
            self._observations = SymbolEncoder(single, "observation", observation_fn)
            self._action_names = SymbolEncoder(single, "action")
            self.has_label_method = isinstance(single, gym.Env) and label_method(single) is not None
        self._labels = LabelSource(env if isinstance(env, gym.Env) else None, labeling_fn)
        self.actions = list_actions(spaces_of(env)[0])
        self.symbols = [self._action_names(action) for action in self.actions]
        self._codes = {symbol: code for code, symbol in enumerate(self.symbols)}
        self._last: dict[int, Any] = {}

    def action_code(self, action: Any) -> int | None:
        """Return the code of an action; None if the environment has none like it."""
        return self._codes.get(self._action_names(action))

    def observation(self, observation: Any) -> Symbol:
        """Return the symbol of an observation."""
        try:
            return self._observations(observation)
        except TraceError as error:
            raise located("the observation", error) from error

    def reset(self, state: LearnerState, index: int, shown: Shown) -> EncodedStep:
        """Encode the return of an environment's reset."""
        self._last[index], label = shown[0], None
        with locating(f"episode {state.buffer.episodes}"):
            symbol = self.observation(shown[0])
            if state.labels.labeling.is_given:
                with locating("reset"):
                    label = self._labels.at_reset(*shown)
        return EncodedStep(symbol, label)

    def step(
        self, state: LearnerState, episode: EpisodeState, action: int, step: Step
    ) -> EncodedStep:
        """Encode the return of an environment's step; if it is invalid, nothing is learned."""
        (observation, reward, terminated, truncated, info), label = step, None
        try:
            if state.labels.undecided:  # the first step shows whether the environment has labels
                state.labels.undecided = False
                if not any(key in info for key in INFO_KEYS):
                    set_labels(state, OBSERVATIONS)
            number, symbol = finite_reward(reward), self.observation(observation)
            if state.labels.labeling.is_given:
                label = self._labels.after_step(
                    self._last[episode.index], self.actions[action], reward, observation, info
                )
            too_large = overflow_error(abs(number), state.config.gamma, state.steps + 1)
            if too_large is not None:
                raise TraceError(too_large)
            ends = checked_flag(terminated, "terminated"), checked_flag(truncated, "truncated")
        except TraceError as error:
            name = f"episode {state.buffer.episodes}"
            if len(state.episodes) > 1:
                name = f"environment {episode.index}"
            raise located(f"{name}: step {episode.length}", error) from error
        self._last[episode.index] = observation
        return EncodedStep(symbol, label, action, number, *ends)


class EpisodePlayer:
    """Plays episodes for a learner, each with a seed derived from its number.

    `resets` counts all resets, and `reset_of` is the number of the last one of each environment.
    """

    def __init__(
        self, env: AnyEnv, state: LearnerState, encoder: Encoder, max_steps: int | None = None
    ) -> None:
        self.runner = SingleRunner(env) if isinstance(env, gym.Env) else VectorRunner(env)
        self.state, self.encoder = state, encoder
        self.limit = max_steps or (None if has_limit(env) else MAX_EPISODE_STEPS)
        self.resets = 0
        self.reset_of = [0] * self.runner.count
        state.episodes = [EpisodeState(index) for index in range(self.runner.count)]

    def begin(self, indices: Iterable[int]) -> dict[int, EncodedStep]:
        """Begin the next episodes of some environments, each with a new seed."""
        indices = list(indices)
        for index in indices:
            self.reset_of[index] = self.resets
            self.resets += 1
        return self.repeat(indices)

    def repeat(self, indices: Iterable[int]) -> dict[int, EncodedStep]:
        """Begin the last episodes of some environments again."""
        seed = self.state.config.seed
        seeds = {index: seed_of(seed, self.reset_of[index]) for index in indices}
        if not seeds:
            return {}
        with locating(f"episode {self.state.buffer.episodes}"):
            shown = self.runner.reset(seeds)
        return {index: self.encoder.reset(self.state, index, shown[index]) for index in shown}

    def step(self, actions: list[int]) -> list[EncodedStep]:
        """Take a step in every environment, and truncate episodes at the limit."""
        return [
            replace(step, truncated=True) if episode.length + 1 == self.limit else step
            for episode, step in zip(self.state.episodes, self.take(actions), strict=True)
        ]

    def take(self, actions: list[int]) -> list[EncodedStep]:
        """Take a step in every environment; all are encoded or none is."""
        state, encoder = self.state, self.encoder
        try:
            steps = self.runner.step([encoder.actions[action] for action in actions])
        except TraceError as error:
            where = f"episode {state.buffer.episodes}: step {state.episodes[0].length}"
            raise located(where, error) from error
        return [
            encoder.step(state, episode, action, step)
            for episode, action, step in zip(state.episodes, actions, steps, strict=True)
        ]
