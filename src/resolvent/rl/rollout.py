"""Play episodes in one environment, and record them as traces.

Input: an environment and an actor or a policy. Output: a `TraceSet`, or the actor's result.
`play_episode` is the only step loop over single environments.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import gymnasium as gym
import numpy as np

from resolvent._util.validation import shown
from resolvent.errors import OptionError, locating
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.rl.env import (
    AnyEnv,
    Info,
    LabelsOfSymbols,
    LabelSource,
    SymbolEncoder,
    checked_flag,
    checked_reset,
    checked_step,
    finite_reward,
    info_column,
    reported_label,
    tabular_env,
    time_limit,
)
from resolvent.traces.columns import ColumnEncoder, TraceSetBuilder
from resolvent.traces.schema import ACTION, LABEL, OBSERVATION, REWARD
from resolvent.traces.symbols import Label
from resolvent.traces.trace_set import TraceSet

Step: TypeAlias = tuple[Any, Any, Any, Any, dict[str, Any]]
"""The return of an environment's step: observation, reward, terminated, truncated, info."""


class Actor(Protocol):
    """Chooses the actions of an episode, and observes its steps."""

    def begin(self, observation: Any, info: dict[str, Any]) -> None:
        """Observe the return of a reset."""

    def act(self, observation: Any) -> Any:
        """Return the next action."""

    def observe(self, observation: Any, action: Any, step: Step) -> None:
        """Observe the step that an action made from an observation."""


def play_episode(
    env: gym.Env[Any, Any],
    actor: Actor,
    *,
    seed: int | None = None,
    max_steps: int | None = None,
    **reset_options: Any,
) -> tuple[bool, bool]:
    """Play one episode; return whether it terminated and whether it was truncated.

    An episode that does not terminate within `max_steps` is truncated.
    """
    observation, info = checked_reset(env.reset(seed=seed, **reset_options))
    actor.begin(observation, info)
    steps = 0
    terminated = truncated = False
    while not (terminated or truncated):
        action = actor.act(observation)
        step = checked_step(env.step(action))
        terminated, truncated = (
            checked_flag(step[2], "terminated"),
            checked_flag(step[3], "truncated"),
        )
        actor.observe(observation, action, step)
        observation = step[0]
        steps += 1
        truncated = truncated or (steps == max_steps and not terminated)
    return terminated, truncated


def random_actions(env: AnyEnv, seed: int | None) -> gym.Space[Any]:
    """Return a copy of the action space, seeded apart from the environment.

    The environment's reset gets `seed` itself. If both drew the same numbers, random actions would
    be correlated with the environment's transitions.

    >>> from resolvent.worlds import House
    >>> first, second = random_actions(House(), seed=0), random_actions(House(), seed=0)
    >>> [first.sample() for _ in range(9)] == [second.sample() for _ in range(9)]
    True
    """
    space = copy.deepcopy(env.action_space)
    if not isinstance(space, gym.Space):
        raise OptionError(
            f"the environment's action_space is {shown(space)}: it has to be a gymnasium space"
        )
    if seed is not None:
        if seed < 0:
            raise OptionError(f"seed={seed}: use at least 0")
        seed = int(np.random.SeedSequence((seed, 1)).generate_state(1)[0])
    space.seed(seed)
    return space


def random_policy(env: AnyEnv, seed: int | None) -> Callable[[Any], Any]:
    """Return a policy that draws its actions from `random_actions`."""
    space = random_actions(env, seed)
    return lambda observation: space.sample()


class Recorder:
    """Record the episodes of an environment as they are played.

    With `inner`, it records the observations inside a wrapper such as `AugmentObservation`: see
    `recordable_inside`.

    >>> from resolvent.worlds import House
    >>> house = House()
    >>> recorder = Recorder(house)
    >>> recorder.begin(*house.reset())
    frozenset()
    >>> following, reward, terminated, truncated, info = house.step(2)
    >>> recorder.step(2, following, reward, info)
    frozenset({'key'})
    >>> recorder.end(terminated=False, truncated=True)
    >>> recorder.trace_set()[0].observations
    ('corridor', 'orangeroom')
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        label_of: Callable[..., Any] | None = None,
        columns: Sequence[str] = (),
        *,
        labelling: LabelingFunction | None = None,
        name_of: Callable[[Any], Any] | None = None,
        inner: bool = False,
    ) -> None:
        self._wrapper: Any = None
        if inner:
            self._wrapper = recordable_inside(env)
            env, name_of = self._wrapper.env, name_of or self._wrapper.name_of
            label_of = label_of or self._wrapper.label_of
        self.observations, self.actions = (
            SymbolEncoder(env, "observation", name_of),
            SymbolEncoder(env, "action"),
        )
        if labelling is not None and not labelling.is_given:
            label_of = LabelsOfSymbols(labelling, self.observations, self.actions)
        self.labels = LabelSource(env, label_of)
        self._info_columns = tuple(columns)
        self._coder, self._episodes = ColumnEncoder(), TraceSetBuilder()
        self._observation: Any = None
        self._columns: dict[str, list[Any]] = {}

    def begin(self, observation: Any, info: Info) -> Label:
        """Record the return of a reset; return the label of the first observation."""
        self._observation = observation = self._to_record(observation)
        with locating("reset"):
            symbol = self.observations(observation)
            label = self.labels.at_reset(observation, info)
            self._columns = {
                OBSERVATION: [symbol],
                LABEL: [label],
                ACTION: [],
                REWARD: [],
                **{name: [] for name in self._info_columns},
            }
        return label

    def step(self, action: Any, following: Any, reward: Any, info: Info) -> Label:
        """Record an action and the return of the step; return the label it led to."""
        columns, following = self._columns, self._to_record(following)
        with locating(f"step {len(columns[ACTION])}"):
            columns[ACTION].append(self.actions(action))
            columns[REWARD].append(finite_reward(reward))
            columns[OBSERVATION].append(self.observations(following))
            label = self.labels.after_step(self._observation, action, reward, following, info)
            columns[LABEL].append(label)
            for name in self._info_columns:
                columns[name].append(info_column(info, name))
        self._observation = following
        return label

    def end(self, *, terminated: bool, truncated: bool) -> None:
        """Close the episode."""
        codes = self._coder.code(self._columns)
        self._episodes.add(codes, terminated=bool(terminated), truncated=bool(truncated))

    def cut(self) -> None:
        """Close an episode without its last step, which failed."""
        extra = {OBSERVATION: 1, LABEL: 1}  # one entry for each step, and one for the reset
        steps = min(len(values) - extra.get(name, 0) for name, values in self._columns.items())
        for name, values in self._columns.items():
            del values[steps + extra.get(name, 0) :]
        if steps:
            self.end(terminated=False, truncated=True)

    def trace_set(self) -> TraceSet:
        """Return all closed episodes."""
        return self._episodes.trace_set(self._coder.values())

    def _to_record(self, observation: Any) -> Any:
        return observation if self._wrapper is None else self._wrapper.inner_observation


def recordable_inside(env: gym.Env[Any, Any]) -> gym.Wrapper[Any, Any, Any, Any]:
    """Return the wrapper, from inside any others, that adds to the observations.

    It has `inner_observation`, the last one that it received, and `label_of` and `name_of`, by
    which it finds labels and names.
    """
    while isinstance(env, gym.Wrapper):
        if hasattr(type(env), "inner_observation"):
            return env
        env = env.env
    raise OptionError(
        "inner=True: nothing here shows more than the world inside: "
        "wrap it in AugmentObservation, or leave inner out"
    )


@runtime_checkable
class LabelPolicy(Protocol):
    """A policy that also reads labels."""

    def begin(self, label: Label) -> None:
        """Read the label of a reset."""

    def read(self, label: Label) -> None:
        """Read the label of a step."""

    def __call__(self, observation: Any) -> Any:
        """Return an action."""


class _RecordingActor:
    """Follow a policy, and record the episodes."""

    def __init__(self, policy: Callable[[Any], Any], recorder: Recorder) -> None:
        self.act = policy
        self._recorder = recorder
        self._label_policy = policy if isinstance(policy, LabelPolicy) else None

    def begin(self, observation: Any, info: dict[str, Any]) -> None:
        label = self._recorder.begin(observation, info)
        if self._label_policy is not None:
            self._label_policy.begin(label)

    def observe(self, observation: Any, action: Any, step: Step) -> None:
        following, reward, _, _, info = step
        label = self._recorder.step(action, following, reward, info)
        if self._label_policy is not None:
            self._label_policy.read(label)


@dataclass(frozen=True)
class RolloutOptions:
    """The options of `collect` except the number of episodes and the workers."""

    policy: Callable[[Any], Any] | None
    label_of: Callable[..., Any] | None
    labelling: LabelingFunction
    name_of: Callable[[Any], Any] | None
    columns: tuple[str, ...]
    max_steps: int | None
    inner: bool


def record_episodes(
    env: gym.Env[Any, Any],
    options: RolloutOptions,
    numbers: range,
    seed: int | None,
    progress: Callable[[float], object] | None = None,
) -> TraceSet:
    """Play and record one episode for each number, which errors name."""
    if _needs_no_steps(options) and (world := tabular_env(env)) is not None:
        draws = random_actions(env, seed).np_random
        limits = options.max_steps, time_limit(env)
        return options.labelling.on(world.rollouts(len(numbers), seed, draws, *limits, progress))
    policy = options.policy or random_policy(env, seed)
    recorder = Recorder(
        env,
        options.label_of,
        options.columns,
        labelling=options.labelling,
        name_of=options.name_of,
        inner=options.inner,
    )
    actor = _RecordingActor(policy, recorder)
    for done, number in enumerate(numbers):
        with locating(f"episode {number}"):
            first_seed = seed if done == 0 else None
            terminated, truncated = play_episode(
                env, actor, seed=first_seed, max_steps=options.max_steps
            )
            recorder.end(terminated=terminated, truncated=truncated)
        if progress is not None:
            progress((done + 1) / len(numbers))
    return recorder.trace_set()


def _needs_no_steps(options: RolloutOptions) -> bool:
    """Return whether an environment's own rollouts suffice; they have no infos."""
    has_labels = options.label_of in (None, reported_label)
    return has_labels and not (
        options.policy is not None
        or options.name_of is not None
        or options.inner
        or options.columns
    )
